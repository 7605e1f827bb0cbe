import { z } from 'zod'
import { READ_OUTPUT_TOOL } from '../base/names.js'
import { defineTool, type Tool, type ToolContext } from '../tool.js'

/**
 * Reads a part of a stored output: `length` characters from `offset`, and the total number of characters.
 * `undefined` when nothing is stored under that reference for this session.
 */
export type ReadOutput = (
  reference: string,
  offset: number,
  length: number,
  context: ToolContext,
) => Promise<{ text: string; totalCharacters: number } | undefined>

/** Pages through stored outputs that were too long for the model. */
export function readOutputTool(read: ReadOutput): Tool {
  return defineTool({
    name: READ_OUTPUT_TOOL,
    description:
      'Reads more of the output of an earlier tool call that was shortened. The marker in the shortened output names the reference.',
    parameters: z.object({
      reference: z.string().describe('The reference from the marker.'),
      offset: z.int().min(0).default(0).describe('The character to start with; 0 is the first.'),
      length: z.int().min(1).max(MAX_LENGTH).default(DEFAULT_LENGTH).describe('How many characters.'),
    }),
    effect: 'read',
    execute: async ({ reference, offset, length }, context) => {
      const part = await read(reference, offset, length, context)
      if (!part) return { error: `No stored output "${reference}" in this session.` }
      const { text, totalCharacters } = part
      const end = offset + text.length
      return {
        reference,
        offset,
        text,
        totalCharacters,
        ...(text.length > 0 && end < totalCharacters ? { nextOffset: end } : {}),
      }
    },
  })
}

const DEFAULT_LENGTH = 8_000
/** Below the limit of a result even when every character takes three bytes. */
const MAX_LENGTH = 16_000
