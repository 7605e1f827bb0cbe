export function checkTwins(
  root: string,
  record?: { most: number; allowed: Record<string, string> },
): { twins: { text: string; rooms: string[]; files: string[] }[]; problems: string[] }
