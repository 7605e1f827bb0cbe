export function compareWalk(traced: readonly string[], listed: readonly string[]): string[]
