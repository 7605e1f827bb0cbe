import type ts from 'typescript'

export function openProjects(root: string): ts.Program[]
export function checkProjects(root: string): { programs: ts.Program[]; errors: readonly ts.Diagnostic[] }
