import type ts from 'typescript'

export function openProjects(
  root: string,
  options?: {
    texts?: ReadonlyMap<string, string>
    projects?: readonly string[]
    isWhole?: boolean
  },
): ts.Program[]
export function ownFiles(root: string, program: ts.Program): ts.SourceFile[]
