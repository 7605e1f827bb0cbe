export function compareWalk(traced: readonly string[], listed: readonly string[]): string[]
export function writeWalk(page: string, files: readonly string[]): string
