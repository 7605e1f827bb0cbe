export function checkRooms(root: string): Promise<{ problems: string[]; seen: number; files: number }>
