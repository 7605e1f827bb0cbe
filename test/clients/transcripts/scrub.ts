/**
 * Takes from a transcript what belongs to the machine that wrote it and what would make it large: folders, and the long
 * texts of lines that are no messages (prompts of the program, lists of its skills). Messages are left as they are.
 */

import { isRecord } from '../../../src/base/is-record.js'

const MOST_CHARACTERS = 80
const MOST_ITEMS = 4
const MOST_LEVELS = 2

export function scrubbed(text: string, { home, project }: { home: string; project: string }): string {
  const plain = text
    .replaceAll(project, '/home/ann/project')
    .replaceAll(home, '/home/ann')
    // Claude Code's own folder for temporary files.
    .replaceAll(/\/tmp\/claude-\d+/g, '/home/ann/tmp')
    .replaceAll(project.replaceAll(/[^A-Za-z0-9]/g, '-'), '-home-ann-project')
  return plain
    .split('\n')
    .map(line => (line.trim() === '' ? line : scrubLine(line)))
    .join('\n')
}

function scrubLine(line: string): string {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return line
  }
  if (!isRecord(value)) return line
  return JSON.stringify(isSpoken(value) ? shortSystem(value) : short(value, 0))
}

/** What a user, a model or a tool said, and files that a user attached. */
function isSpoken({ type, message, payload, attachment }: Record<string, unknown>): boolean {
  if (isRecord(payload)) return type === 'response_item' || type === 'compacted'
  if (isRecord(attachment)) return attachment.type === 'file' || attachment.type === 'queued_command'
  return isRecord(message) && (type === 'user' || type === 'assistant' || type === 'message')
}

/** Shortens the instructions that the program itself gives. */
function shortSystem(line: Record<string, unknown>): unknown {
  const inner = isRecord(line.payload) ? line.payload : isRecord(line.message) ? line.message : {}
  if (isRecord(line.payload) && Array.isArray(inner.replacement_history)) {
    const history = inner.replacement_history.map(item => (isInstruction(item) ? short(item, 0) : item))
    return { ...line, payload: { ...inner, replacement_history: history } }
  }
  if (!isInstruction(inner)) return line
  return isRecord(line.payload)
    ? { ...line, payload: short(line.payload, 0) }
    : { ...line, message: short(line.message, 0) }
}

function isInstruction(item: unknown): boolean {
  return isRecord(item) && (item.role === 'system' || item.role === 'developer')
}

function short(value: unknown, level: number): unknown {
  if (typeof value === 'string') {
    const left = value.length - MOST_CHARACTERS
    return left > 40 ? `${value.slice(0, MOST_CHARACTERS)} … (${left} characters cut)` : value
  }
  if (Array.isArray(value) && level > MOST_LEVELS) return []
  if (Array.isArray(value)) return value.slice(0, MOST_ITEMS).map(item => short(item, level + 1))
  if (!isRecord(value)) return value
  if (level > MOST_LEVELS) return {}
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, short(item, level + 1)]))
}
