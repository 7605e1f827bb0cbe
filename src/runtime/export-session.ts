/**
 * A session in the form of another framework, or as the body of a request: one table of forms. What is written is read
 * again by the reader of its form and compared with the session, so that whatever the form has no place for is named.
 */
import { messagesToProvider } from '../adk/messages-to-provider.js'
import { storedNumber } from '../adk/model/convert-messages.js'
import { eventIdOf, restoreEvents } from '../adk/session/messages-to-events.js'
import { suggest } from '../base/suggest.js'
import { AgentError } from '../errors.js'
import { toPlainEvent, toPythonSession } from '../formats/adk-events.js'
import { readAdkSession } from '../formats/adk-sessions.js'
import { readMastraMessages, readModelMessages, readUiMessages } from '../formats/ai-sdk-messages.js'
import { writeMastraMessages, writeModelMessages, writeUiMessages } from '../formats/ai-sdk-writers.js'
import { EXPORT_FORMATS, type ExportFormat } from '../formats/export-forms.js'
import { readLangChain, writeLangChain } from '../formats/langchain-messages.js'
import { fieldsNotIn, partsLost } from '../formats/left-out.js'
import { readAgentsItems, writeAgentsItems } from '../formats/openai-agents-items.js'
import { type Fields, recordsOf, type SourceMessage } from '../formats/wire-parts.js'
import type { ProviderMessage } from '../provider/provider.js'
import type { Message, Session, SessionKey, StoredMessage } from '../session/message.js'
import { messagePages } from '../session/session-pages.js'
import type { SessionStore } from '../session/session-store.js'
import { PROFILE_FACTS, type StrictProfile } from '../testing/strict/profile.js'
import { stepTitle } from '../transcript/repair-words.js'
import { bodyFor, WIRES } from './check/healed-file.js'
import { heal } from './heal/heal.js'

export interface WrittenSession {
  content: unknown
  /** What of the session is not in the content, by names of fields: `timestamp (4)`. */
  leftOut: string[]
  notes: string[]
}

type Written = Pick<WrittenSession, 'content'> & {
  /** What the form's own reader finds in the content. */
  read: readonly ProviderMessage[]
  /** What the messages were before they were written, when that is not what was given. */
  source?: readonly ProviderMessage[]
  notes?: readonly string[]
}

type Writer = (session: Session, messages: readonly SourceMessage[]) => Written | Promise<Written>

const WRITERS: Readonly<Record<ExportFormat, Writer>> = {
  adk: session => adkSession(session, content => content),
  'adk-python': session => adkSession(session, toPythonSession),
  'ai-sdk-ui': (_, messages) => listed(writeUiMessages(messages), readUiMessages),
  'ai-sdk-model': (_, messages) => listed(writeModelMessages(messages), readModelMessages),
  mastra: ({ key }, messages) => {
    const thread = { threadId: key.sessionId, resourceId: key.userId }
    return listed(writeMastraMessages(messages, thread), readMastraMessages)
  },
  langchain: (_, messages) => listed(writeLangChain(messages), readLangChain),
  'openai-agents': (_, messages) => listed(writeAgentsItems(messages), readAgentsItems),
  'openai-chat': (_, messages) => requestBody(messages, 'openai-chat'),
  'openai-responses': (_, messages) => requestBody(messages, 'openai-responses'),
  anthropic: (_, messages) => requestBody(messages, 'anthropic-4.6'),
  gemini: (_, messages) => requestBody(messages, 'gemini-3'),
}

/** A form by its name. Throws `invalid-argument`. */
export function exportFormat(name: string): ExportFormat | 'lango' {
  const known = ['lango', ...EXPORT_FORMATS] as const
  const found = known.find(format => format === name)
  if (found) return found
  const meant = suggest(name, known)
  const advice = meant === undefined ? `Formats: ${known.join(', ')}.` : `Did you mean ${meant}?`
  throw new AgentError('invalid-argument', `Sessions cannot be exported as "${name}". ${advice}`)
}

/** A session in another form. `undefined` when it does not exist. */
export async function writeSession(
  store: Pick<SessionStore, 'loadSession' | 'readMessages' | 'artifacts'>,
  key: SessionKey,
  format: ExportFormat,
): Promise<WrittenSession | undefined> {
  const loaded = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  if (!loaded) return undefined
  const messages: StoredMessage[] = []
  for await (const page of messagePages(store, key, { beforeSeq: loaded.totalMessages + 1 }))
    messages.push(...page)
  const session = { ...loaded, messages }
  const given = sourceOf(messages)
  if (given.every(({ parts }) => parts.length === 0))
    throw new AgentError('invalid-argument', `Session "${key.sessionId}" has no messages to write.`)
  const { content, read, source = given, notes = [] } = await WRITERS[format](session, given)
  const artifacts = await store.artifacts.list(key)
  const { state, title } = loaded
  const facts = {
    ...(Object.keys(state).length > 0 ? { state } : {}),
    ...(title === undefined ? {} : { title }),
  }
  return {
    content,
    leftOut: [
      ...partsLost(source, read),
      ...fieldsNotIn(content, messages.map(factsOf)),
      ...fieldsNotIn(content, [facts]),
      ...(artifacts.length > 0 ? [`artifacts (${artifacts.length})`] : []),
    ],
    notes: [...notes, ...(isBody(format) ? [] : brokenNote(messages, key))],
  }
}

/** What is broken is written as it is stored: only a body is repaired, by the provider that it is for. */
function brokenNote(messages: readonly Message[], { sessionId }: SessionKey): string[] {
  const { changes } = heal(messages)
  if (changes.length === 0) return []
  return [
    `The history has problems that providers refuse (${changes.length}), and they are written as they are stored. Repair a copy first: lango doctor --session ${sessionId} --fix`,
  ]
}

function isBody(format: ExportFormat): boolean {
  return format === 'anthropic' || format === 'gemini' || /^openai-(chat|responses)$/.test(format)
}

function sourceOf(messages: readonly StoredMessage[]): SourceMessage[] {
  return messagesToProvider(messages).map((message, index) => {
    const at = (storedNumber(message) ?? 1) - 1
    const stored = messages[at]
    return {
      ...message,
      id: stored ? eventIdOf(stored, at) : `message-${index + 1}`,
      timestamp: stored?.timestamp ?? 0,
    }
  })
}

/** What a stored message says besides its parts. */
function factsOf({ id, author, timestamp, invocationId, branch, extra = {} }: Message): Fields {
  const { role: _role, parts: _parts, content: _content, partsFirst: _first, ...others } = extra
  return { id, author: author === 'user' ? undefined : author, timestamp, invocationId, branch, ...others }
}

function listed(content: Fields[], read: (rows: readonly Fields[]) => readonly ProviderMessage[]): Written {
  return { content, read: read(JSON.parse(JSON.stringify(content))) }
}

/** As `adk run --save_session` writes it and `--resume` reads it. */
function adkSession(session: Session, form: (content: Fields) => Fields): Written {
  const { key, state, messages, updatedAt } = session
  const whole = {
    id: key.sessionId,
    appName: key.appName,
    userId: key.userId,
    state,
    events: restoreEvents(messages, {}).map(event => toPlainEvent(event as unknown as Fields)),
    lastUpdateTime: updatedAt,
  }
  const content = form(JSON.parse(JSON.stringify(whole)))
  return { content, read: messagesToProvider(readAdkSession(content).messages) }
}

/** The messages of a request as Lango would send them to a model of the profile, without its settings. */
async function requestBody(messages: readonly SourceMessage[], profile: StrictProfile): Promise<Written> {
  const { family, model } = PROFILE_FACTS[profile]
  const { list, system, tools, read } = WIRES[family]
  // A history that ends with an answer waits for its user, and nobody is to be quoted with words of Lango's.
  const isAnswered = messages.at(-1)?.role === 'assistant'
  const given = isAnswered ? [...messages, NEXT] : messages
  const { body, repairs, mappedIds } = await bodyFor(given, profile, model)
  const rows = recordsOf(body[list])
  const content: Fields = {}
  for (const name of [system, tools])
    if (name !== undefined && body[name] !== undefined) content[name] = body[name]
  content[list] = isAnswered ? rows.slice(0, -1) : rows
  const titles = [...new Set(repairs.map(({ step }) => stepTitle(step)))]
  const notes = titles.length === 0 ? [] : [`Written for ${profile}. Repaired: ${titles.join(', ')}.`]
  return { content, read: read(content), source: withIds(messages, mappedIds), notes }
}

const NEXT: ProviderMessage = { role: 'user', parts: [{ type: 'text', text: '…' }] }

function withIds(
  messages: readonly SourceMessage[],
  ids: Readonly<Record<string, string>>,
): readonly ProviderMessage[] {
  return messages.map(message => ({
    ...message,
    parts: message.parts.map(part =>
      'id' in part && Object.hasOwn(ids, part.id) ? { ...part, id: ids[part.id] ?? part.id } : part,
    ),
  }))
}
