import type ts from 'typescript'

export function openProjects(root: string, texts?: ReadonlyMap<string, string>): ts.Program[]
export function ownFiles(root: string, program: ts.Program): ts.SourceFile[]
