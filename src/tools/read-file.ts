import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { z } from 'zod'
import { defineTool, type Tool } from '../tool.js'
import { describeBinary } from './binary-content.js'
import { inWorkspace, type TextFiles } from './workspace-path.js'

export interface ReadToolOptions {
  workspace: string
  files?: TextFiles | undefined
}

/** Reads a text file of the workspace, page by page. */
export function readFileTool({ workspace, files }: ReadToolOptions): Tool {
  return defineTool({
    name: 'read_file',
    description:
      'Reads a text file of the workspace. Long files come in pages: continue with first_line set to nextLine.',
    parameters: z.object({
      path: z.string().min(1).describe('The path, relative to the workspace.'),
      first_line: z.int().min(1).default(1).describe('The line to start with; 1 is the first.'),
      max_lines: z.int().min(1).max(MAX_LINES).default(DEFAULT_LINES),
    }),
    effect: 'read',
    execute: ({ path, first_line, max_lines }, context) =>
      inWorkspace(workspace, path, async ({ parent, name, path: found }) => {
        const handle = await parent.file(name)
        try {
          const bytes = (await handle.stat()).size
          const binary = await describeBinary(handle, bytes)
          if (binary) return { path: found, bytes, ...binary }
          const range = { firstLine: first_line, maxLines: max_lines, signal: context.signal }
          const held = await files?.read(join(parent.path, name), context)
          if (held !== undefined)
            return { path: found, bytes: Buffer.byteLength(held), ...linesOf(held, range) }
          return { path: found, bytes, ...(await readLines(handle, range)) }
        } finally {
          await handle.close()
        }
      }),
  })
}

const DEFAULT_LINES = 1_000
const MAX_LINES = 5_000
/** Below the limit of a result for any script. */
const MAX_PAGE_BYTES = 48_000
const MAX_LINE_CHARACTERS = 4_000
const CHUNK_BYTES = 65_536

interface PageOptions {
  firstLine: number
  maxLines: number
  signal: AbortSignal
}

/** One page of lines. The file is read in chunks and never held in memory as a whole, however long its lines are. */
async function readLines(handle: FileHandle, options: PageOptions) {
  const page = new LinePage(options)
  const decoder = new StringDecoder('utf8')
  const chunk = Buffer.alloc(CHUNK_BYTES)
  for (let position = 0; !page.isFull; ) {
    options.signal.throwIfAborted()
    const { bytesRead } = await handle.read(chunk, 0, CHUNK_BYTES, position)
    if (bytesRead === 0) {
      page.add(decoder.end())
      page.end()
      break
    }
    page.add(decoder.write(chunk.subarray(0, bytesRead)))
    position += bytesRead
  }
  return page.result()
}

function linesOf(text: string, options: PageOptions) {
  const page = new LinePage(options)
  page.add(text)
  page.end()
  return page.result()
}

/** Takes the text of a file in chunks and keeps the requested lines. */
class LinePage {
  #lineNumber = 1
  #line = ''
  #lineLength = 0
  #size = 0
  #atEnd = false
  readonly #lines: string[] = []

  readonly #options: PageOptions

  constructor(options: PageOptions) {
    this.#options = options
  }

  get isFull(): boolean {
    return this.#lines.length >= this.#options.maxLines || this.#size >= MAX_PAGE_BYTES
  }

  add(text: string): void {
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1 && !this.isFull; end = text.indexOf('\n', start)) {
      this.#extend(text.slice(start, end))
      this.#endLine()
      start = end + 1
    }
    if (!this.isFull) this.#extend(text.slice(start))
  }

  end(): void {
    if (this.isFull) return
    if (this.#lineLength > 0) this.#endLine()
    this.#atEnd = true
  }

  result() {
    const { firstLine } = this.#options
    const lastLine = firstLine + this.#lines.length - 1
    const text = this.#lines.join('\n')
    if (this.#atEnd && this.#lines.length === 0) {
      const totalLines = this.#lineNumber - 1
      return { text, totalLines, note: `The file has ${totalLines} lines.` }
    }
    return {
      text,
      firstLine,
      lastLine,
      ...(this.#atEnd ? { totalLines: lastLine } : { nextLine: lastLine + 1 }),
    }
  }

  #extend(text: string): void {
    this.#lineLength += text.length
    const room = MAX_LINE_CHARACTERS - this.#line.length
    if (room > 0) this.#line += text.slice(0, room)
  }

  #endLine(): void {
    if (this.#lineNumber >= this.#options.firstLine) {
      const missing = this.#lineLength - this.#line.length
      const note = missing > 0 ? `… [shortened by Lango: ${missing} characters of this line left out]` : ''
      this.#lines.push(this.#line + note)
      this.#size += Buffer.byteLength(this.#line) + 1
    }
    this.#lineNumber++
    this.#line = ''
    this.#lineLength = 0
  }
}
