export function checkSwitches(root: string): { switches: number; problems: string[] }
