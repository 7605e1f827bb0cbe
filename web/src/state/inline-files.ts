/** Text files travel as text: every model reads it, few take a file. */
import type { AttachedFile } from './api.js'

/** Longer pastes become a file that is attached: a field with a book in it cannot be edited. */
export const LONGEST_PASTE = 20_000

/** The message with the text of its text files below it, and the files that remain files. */
export function inlineFiles(
  text: string,
  files: readonly AttachedFile[],
): { text: string; files: AttachedFile[] } {
  const blocks: string[] = []
  const kept: AttachedFile[] = []
  for (const file of files) {
    const content = textOfFile(file)
    if (content === undefined) kept.push(file)
    else blocks.push(fenced(file.name ?? 'file', content))
  }
  return { text: [text, ...blocks].filter(part => part !== '').join('\n\n'), files: kept }
}

const NEVER_TEXT = /^(image|audio)\/|^application\/pdf$/
/** Control characters other than tabs and line ends: not a text that anybody wrote. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const BINARY = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/

function textOfFile({ data, mimeType }: AttachedFile): string | undefined {
  if (NEVER_TEXT.test(mimeType)) return undefined
  try {
    const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0))
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return BINARY.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

/** A fence longer than any in the text, so that the text stays inside. */
function fenced(name: string, content: string): string {
  let longest = 2
  for (const [ticks] of content.matchAll(/`{3,}/g)) longest = Math.max(longest, ticks.length)
  const fence = '`'.repeat(longest + 1)
  return `${name}:\n${fence}\n${content.replace(/\n$/, '')}\n${fence}`
}
