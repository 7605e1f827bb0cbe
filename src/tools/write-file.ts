import { z } from 'zod'
import { AgentError } from '../errors.js'
import { defineTool, type Tool } from '../tool.js'
import { replaceFile } from './replace-file.js'
import { inWorkspace, type OpenFolder } from './workspace-path.js'

export interface WriteToolOptions {
  workspace: string
  /** Whether a person is asked first. Default true. */
  needsApproval?: boolean | undefined
}

/** Writes a whole file of the workspace. */
export function writeFileTool({ workspace, needsApproval = true }: WriteToolOptions): Tool {
  return defineTool({
    name: 'write_file',
    description:
      'Writes a text file of the workspace, creating it and its folders, or replacing all of its content.',
    parameters: z.object({
      path: z.string().min(1).describe('The path, relative to the workspace.'),
      content: z.string().max(MAX_CHARACTERS),
    }),
    effect: 'once',
    needsApproval,
    execute: ({ path, content }, { signal }) =>
      inWorkspace(
        workspace,
        path,
        async ({ parent, name, path: found }) => {
          signal.throwIfAborted()
          const existed = await isReplaceable(parent, name, found)
          await replaceFile(parent, name, content)
          return { path: found, bytes: Buffer.byteLength(content), created: !existed }
        },
        { create: true },
      ),
  })
}

const MAX_CHARACTERS = 8_000_000

/** Whether there is a file to replace; folders, pipes and devices are not replaced. */
async function isReplaceable(folder: OpenFolder, name: string, path: string): Promise<boolean> {
  const facts = await folder.facts(name).catch(() => undefined)
  if (!facts) return false
  if (facts.isFile()) return true
  throw new AgentError('invalid-argument', `"${path}" exists and is not a plain file. Choose another path.`)
}
