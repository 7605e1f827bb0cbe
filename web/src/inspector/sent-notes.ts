/** The notes of memory that stand in a request, read from its words: each has its number, its messages and a quoted text. */
import type { WireRequest } from './wire-messages.js'

export interface SentNote {
  number: number
  fromSeq: number
  toSeq: number
  text: string
}

/** Messages up to `throughSeq` are not in the request; notes stand for some of them. */
export interface SentNotes {
  throughSeq: number
  notes: SentNote[]
}

export function sentNotes({ system, messages }: WireRequest): SentNotes | undefined {
  // The notes stand before the history: no text of a chat comes earlier.
  const first = messages[0]?.parts.map(({ text }) => text) ?? []
  for (const text of [system, ...first]) {
    const block = FRAME.exec(text)
    if (block?.[1] === undefined) continue
    const lines = (block[2] ?? '').split('\n')
    return { throughSeq: Number(block[1]), notes: lines.flatMap(line => readNote(line)) }
  }
  return undefined
}

const FRAME = /<memory>\nMessages 1 to (\d+) of this conversation are not shown\.([\s\S]*?)\n<\/memory>/

const LINE = /^\[(\d+)\] .*?, messages? (\d+)(?:–(\d+))?, [^:"]*: (".*")$/

function readNote(line: string): SentNote[] {
  const [, number, from, to = from, quoted] = LINE.exec(line) ?? []
  const text = quoted === undefined ? undefined : unquoted(quoted)
  if (text === undefined) return []
  return [{ number: Number(number), fromSeq: Number(from), toSeq: Number(to), text }]
}

function unquoted(quoted: string): string | undefined {
  try {
    return String(JSON.parse(quoted))
  } catch {
    // Words of an instruction that only look like a note.
    return undefined
  }
}
