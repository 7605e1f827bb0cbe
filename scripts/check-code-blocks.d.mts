export interface CodeBlock {
  readonly file: string
  readonly line: number
  readonly language: string
  readonly code: string
  readonly setup: string
  readonly noRun?: string
}
export function findCodeBlocks(root: string): CodeBlock[]
export function checkCodeBlocks(
  root: string,
  options?: { compile?: boolean; run?: boolean; only?: readonly string[]; parsed?: Map<string, unknown> },
): Promise<{ blocks: number; run: number; problems: string[] }>
export function compileBlocks(
  root: string,
  blocks: readonly CodeBlock[],
  ignored?: readonly number[],
  parsed?: Map<string, unknown>,
): string[]
