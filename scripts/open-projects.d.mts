import type ts from 'typescript'

export function openProjects(root: string): ts.Program[]
export function checkProjects(
  root: string,
  projects?: readonly string[],
  isElsewhere?: (name: string) => boolean,
): { programs: ts.Program[]; errors: string[] }
