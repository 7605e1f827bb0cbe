import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { AgentError } from '../errors.js'
import { defineTool, type Tool } from '../tool.js'
import { inWorkspace, type OpenFolder, type TextFiles } from './workspace-path.js'

export interface WriteToolOptions {
  workspace: string
  /** Whether approval is required. Default true. */
  needsApproval?: boolean | undefined
  files?: TextFiles | undefined
}

/** Writes a whole file of the workspace. */
export function writeFileTool({ workspace, needsApproval = true, files }: WriteToolOptions): Tool {
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
    execute: ({ path, content }, context) =>
      inWorkspace(
        workspace,
        path,
        async ({ parent, name, path: found }) => {
          context.signal.throwIfAborted()
          const existed = await isReplaceable(parent, name, found)
          const isHeld = await files?.write(join(parent.path, name), content, context)
          if (!isHeld) await replaceFile(parent, name, content)
          return { path: found, bytes: Buffer.byteLength(content), created: !existed }
        },
        { create: true },
      ),
  })
}

const MAX_CHARACTERS = 8_000_000

/** Whether a file exists that can be replaced; folders, pipes and devices cannot. */
async function isReplaceable(folder: OpenFolder, name: string, path: string): Promise<boolean> {
  const facts = await folder.facts(name).catch(() => undefined)
  if (!facts) return false
  if (facts.isFile()) return true
  throw new AgentError('invalid-argument', `"${path}" exists and is not a plain file. Choose another path.`)
}

/**
 * Writes a temporary file and renames it: readers see the old content or the new, never a part of it; a link is
 * replaced, not followed; and another name of the old file (a hard link, perhaps outside the workspace) keeps the
 * old content. `isUnchanged` is called just before the rename.
 */
async function replaceFile(
  folder: OpenFolder,
  name: string,
  content: string,
  isUnchanged: () => Promise<boolean> = async () => true,
): Promise<boolean> {
  const temporary = `.lango-${randomUUID()}.tmp`
  const mode = await modeOf(folder, name)
  const handle = await folder.file(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL)
  try {
    await handle.writeFile(content, 'utf8')
    if (mode !== undefined) await handle.chmod(mode)
    await handle.sync()
    if (!(await isUnchanged())) {
      await folder.remove(temporary)
      return false
    }
    await folder.rename(temporary, name)
    return true
  } catch (error) {
    await folder.remove(temporary).catch(() => {})
    throw error
  } finally {
    await handle.close()
  }
}

async function modeOf(folder: OpenFolder, name: string): Promise<number | undefined> {
  try {
    const facts = await folder.facts(name)
    return facts.isFile() ? facts.mode & 0o777 : undefined
  } catch {
    return undefined
  }
}

/** Replaces one passage of a file of the workspace. */
export function editFileTool({ workspace, needsApproval = true, files }: WriteToolOptions): Tool {
  return defineTool({
    name: 'edit_file',
    description:
      'Replaces a passage of a text file of the workspace. old_text must occur in the file exactly once, character for character, unless replace_all is true.',
    parameters: z.object({
      path: z.string().min(1).describe('The path, relative to the workspace.'),
      old_text: z
        .string()
        .min(1)
        .describe('The passage exactly as it is in the file, with enough context to be unique.'),
      new_text: z.string().describe('What to put in its place.'),
      replace_all: z.boolean().default(false),
    }),
    effect: 'once',
    needsApproval,
    execute: ({ path, old_text, new_text, replace_all }, context) =>
      inWorkspace(workspace, path, async ({ parent, name, path: found }) => {
        const before = await readWhole(parent, name, found)
        const edit = { path: found, oldText: old_text, newText: new_text, replaceAll: replace_all }
        const held = await files?.read(join(parent.path, name), context)
        const { text, replacements } = replacePassage(held ?? before.text, edit)
        context.signal.throwIfAborted()
        if (await files?.write(join(parent.path, name), text, context)) return { path: found, replacements }
        const written = await replaceFile(parent, name, text, async () => {
          const now = await parent.facts(name)
          return now.ino === before.ino && now.mtimeMs === before.mtimeMs && now.size === before.size
        })
        if (!written) throw problem(`"${found}" was changed by another process. Read it again.`)
        return { path: found, replacements }
      }),
  })
}

const MAX_BYTES = 8_000_000

/** The whole text of a file. Other encodings than UTF-8 would be damaged by writing, and are refused. */
async function readWhole(folder: OpenFolder, name: string, path: string) {
  const handle = await folder.file(name)
  try {
    const { size, ino, mtimeMs } = await handle.stat()
    if (size > MAX_BYTES) throw problem(`"${path}" has ${size} bytes; at most ${MAX_BYTES} can be edited.`)
    const text = decode(await handle.readFile())
    if (text === undefined || text.includes('\0')) throw problem(`"${path}" is not a text file (UTF-8).`)
    return { text, size, ino, mtimeMs }
  } finally {
    await handle.close()
  }
}

function decode(content: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
  } catch {
    return undefined
  }
}

interface Edit {
  path: string
  oldText: string
  newText: string
  replaceAll: boolean
}

function replacePassage(text: string, { path, oldText, newText, replaceAll }: Edit) {
  const places = placesOf(text, oldText)
  if (places.length === 0 && isCrlf(text) && !oldText.includes('\r')) {
    const [old, replacement] = [oldText, newText].map(part => part.replaceAll(/\r?\n/g, '\r\n'))
    // Models write LF; in a file with CRLF it means the same.
    if (old !== undefined && replacement !== undefined && old !== oldText && text.includes(old)) {
      return replacePassage(text, { path, oldText: old, newText: replacement, replaceAll })
    }
  }
  if (places.length === 0) throw problem(`old_text does not occur in "${path}". ${hint(text, oldText)}`)
  if (places.length > 1 && !replaceAll) {
    const lines = places.slice(0, 10).map(place => lineOf(text, place))
    throw problem(
      `old_text occurs in "${path}" ${places.length} times (lines ${lines.join(', ')}${places.length > 10 ? ', …' : ''}). Include more of the surrounding text, or set replace_all.`,
    )
  }
  return { text: text.split(oldText).join(newText), replacements: places.length }
}

function placesOf(text: string, part: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) places.push(at)
  return places
}

function isCrlf(text: string): boolean {
  return text.includes('\r\n')
}

function lineOf(text: string, place: number): number {
  return text.slice(0, place).split('\n').length
}

/** Most misses differ in white space only. */
function hint(text: string, oldText: string): string {
  const plain = (value: string) => value.replaceAll(/\s+/g, ' ').trim()
  return plain(text).includes(plain(oldText))
    ? 'It does with different white space: copy the passage exactly, including spaces, tabs and line breaks.'
    : 'Read the file again and copy the passage exactly.'
}

function problem(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
