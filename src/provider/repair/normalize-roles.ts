/**
 * Makes every message readable for the steps that follow: one of the four roles, and a list of parts of the
 * known kinds. History from elsewhere may hold anything here, so this is the one place that trusts no type.
 */
import { isRecord } from '../../base/is-record.js'
import type { ProviderMessage, ProviderPart } from '../provider.js'
import { type Entry, newEntry, replaceEntries, type StepContext } from './receipt.js'
import { writeOut } from './well-formed-text.js'

const STEP = 'normalize-roles'

/** Gives every message a known role and known parts. */
export function normalizeRoles(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  return replaceEntries(entries, entry => readRole(readParts(entry, context), context))
}

const ROLES: ReadonlySet<string> = new Set(['system', 'user', 'assistant', 'tool'])

const ALIASES: ReadonlyMap<string, string> = new Map([
  ['model', 'assistant'],
  ['ai', 'assistant'],
  ['function', 'tool'],
  ['developer', 'system'],
  ['human', 'user'],
])

function readRole(entry: Entry, { report }: StepContext): Entry {
  const role: unknown = entry.message.role
  const { at } = entry
  if (typeof role === 'string' && ROLES.has(role)) return entry
  const { parts } = entry.message
  if (typeof role !== 'string' || role.trim() === '') {
    report({ step: STEP, kind: 'set-role', at, detail: 'A message without a role was sent as user.' })
    return newEntry('user', parts, at)
  }
  const lower = role.trim().toLowerCase()
  const known = ROLES.has(lower) ? lower : ALIASES.get(lower)
  if (known !== undefined) {
    report({ step: STEP, kind: 'rename-role', at, detail: `The role "${role}" was sent as ${known}.` })
    return newEntry(known, parts, at)
  }
  const detail = `The unknown role "${role}" was sent as user, with its name in front.`
  report({ step: STEP, kind: 'name-author', at, detail })
  const speaks = parts.some(part => part.type !== 'tool-call' && part.type !== 'tool-result')
  return newEntry('user', speaks ? [{ type: 'text', text: `[${role} says]` }, ...parts] : parts, at)
}

function readParts(entry: Entry, { report }: StepContext): Entry {
  const { at } = entry
  const message = entry.message as ProviderMessage | null | undefined
  const given: unknown = message?.parts
  if (!Array.isArray(given)) {
    report({ step: STEP, kind: 'drop-part', at, detail: 'A message without a list of parts was emptied.' })
    return newEntry(message?.role ?? '', [], at)
  }
  if (given.every(isReadable)) return entry
  const parts: ProviderPart[] = []
  for (const part of given as unknown[]) {
    const readable = isReadable(part) ? part : mend(part)
    if (readable !== undefined) parts.push(readable)
  }
  const lost = given.length - parts.length
  const unknown = given.some(part => isRecord(part) && !KINDS.has(String(part.type)))
  const mended = unknown ? 'keep-text' : 'mend-part'
  const detail = lost > 0 ? `${lost} parts that hold nothing were dropped.` : MENDED[mended]
  report({ step: STEP, kind: lost > 0 ? 'drop-part' : mended, at, detail })
  return newEntry((message as ProviderMessage).role, parts, at)
}

const MENDED = {
  'mend-part': 'Missing fields of a part were set empty.',
  'keep-text': 'Parts of no known kind were sent as text.',
} as const

const KINDS: ReadonlySet<string> = new Set([
  'text',
  'reasoning',
  'vendor',
  'tool-call',
  'tool-result',
  'media',
])

function isReadable(part: unknown): part is ProviderPart {
  if (typeof part !== 'object' || part === null) return false
  const fields = part as Readonly<Record<string, unknown>>
  switch (fields.type) {
    case 'text':
    case 'reasoning':
    case 'vendor':
      return typeof fields.text === 'string'
    case 'tool-call':
    case 'tool-result':
      return typeof fields.id === 'string' && typeof fields.name === 'string'
    case 'media':
      return typeof fields.mimeType === 'string'
    default:
      return false
  }
}

/** A part of a known kind whose identity fields are missing keeps the rest; of others, what they say is kept. */
function mend(part: unknown): ProviderPart | undefined {
  if (typeof part === 'string' && part !== '') return { type: 'text', text: part }
  if (!isRecord(part)) return undefined
  const fields = part
  if (!KINDS.has(String(fields.type))) {
    const words = saysOf(fields)
    return words === '' ? undefined : { type: 'text', text: words }
  }
  const text = (value: unknown) =>
    typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  const mended =
    fields.type === 'tool-call' || fields.type === 'tool-result'
      ? { ...fields, id: text(fields.id), name: text(fields.name) }
      : { ...fields, text: text(fields.text), ...(fields.type === 'media' && MEDIA_TYPE) }
  return isReadable(mended) ? mended : undefined
}

/** The text of a part of unknown kind: its own, or all of it as JSON. */
function saysOf({ type, ...fields }: Readonly<Record<string, unknown>>): string {
  for (const key of ['text', 'content', 'thinking', 'refusal', 'value']) {
    if (typeof fields[key] === 'string' && fields[key] !== '') return fields[key] as string
  }
  if (Object.keys(fields).length === 0) return ''
  const label = typeof type === 'string' && type !== '' ? `[${type}] ` : ''
  return label + writeOut(fields, MOST_WORDS)
}

/** A part that nobody knows may be of any size. */
const MOST_WORDS = 20_000

const MEDIA_TYPE = { mimeType: 'application/octet-stream' }
