export function checkLinks(root: string): string[]
