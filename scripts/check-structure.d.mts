export interface StructureRecord {
  files?: number
  walk?: number
  loose?: string[]
}
export function checkStructure(
  root: string,
  record?: StructureRecord,
): { figures: Record<string, number>; problems: string[] }
