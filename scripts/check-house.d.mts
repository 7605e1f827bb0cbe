export function checkHouse(root: string): string[]
