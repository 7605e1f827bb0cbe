/**
 * Sessions as JSONL, without loss: a header line, then one stored message per line, then one version of an artifact per
 * line. A file may contain several sessions. JSON escapes NUL and lone surrogates, so any text survives.
 */

import { StringDecoder } from 'node:string_decoder'
import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { withoutBom } from '../base/json.js'
import { AgentError, messageOf } from '../errors.js'
import type { Artifact, ArtifactStore } from '../session/artifacts.js'
import type { Message, Session, SessionKey, State, StoredMessage } from '../session/message.js'
import { messagePages } from '../session/session-pages.js'
import type { SessionStore } from '../session/session-store.js'

/** The first line of a session. */
export interface SessionHeader {
  lango: 'session'
  version: 1
  key: SessionKey
  state: State
  title?: string
  createdAt: number
  /** The number of messages that follow, to detect a truncated file. */
  messages?: number
}

/** A version of an artifact; versions of one name follow each other. */
export interface ArtifactLine extends Artifact {
  lango: 'artifact'
  name: string
}

export type SessionLine =
  | { line: number; header: SessionHeader }
  | { line: number; message: Message }
  | { line: number; artifact: ArtifactLine }

/** The header of a session. Keys of the state are sorted: the same session gives the same bytes. */
export function headerLine({ key, state, title, createdAt, totalMessages }: Session): string {
  const { appName, userId, sessionId } = key
  const header: SessionHeader = {
    lango: 'session',
    version: 1,
    key: { appName, userId, sessionId },
    state: Object.fromEntries(Object.entries(state).sort(([one], [other]) => (one < other ? -1 : 1))),
    ...defined({ title }),
    createdAt,
    messages: totalMessages,
  }
  return `${JSON.stringify(header)}\n`
}

export function messageLine(message: Message): string {
  return `${JSON.stringify(message)}\n`
}

/** The artifacts of a session, or only those of its user, as lines. */
async function* artifactLines(
  artifacts: ArtifactStore | undefined,
  key: SessionKey,
  isWanted: (name: string) => boolean,
): AsyncGenerator<string> {
  for (const name of (await artifacts?.list(key)) ?? []) {
    if (!isWanted(name)) continue
    for (const { version } of (await artifacts?.versions({ ...key, name })) ?? []) {
      const found = await artifacts?.load({ ...key, name }, version)
      if (found) yield `${JSON.stringify({ lango: 'artifact', name, ...found })}\n`
    }
  }
}

/** Messages that are read at once. */
const PAGE = 500

/**
 * A session as lines, a page of messages at a time. Nothing when it does not exist. `isWanted` chooses the artifacts:
 * those of the user would be repeated with each of the user's sessions.
 */
export async function* exportLines(
  store: Pick<SessionStore, 'loadSession' | 'readMessages' | 'artifacts'>,
  key: SessionKey,
  isWanted: (name: string) => boolean = () => true,
): AsyncGenerator<{ text: string; messages: number; throughSeq: number; totalMessages: number }> {
  const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  if (session === undefined) return
  const { totalMessages } = session
  yield { text: headerLine(session), messages: 0, throughSeq: 0, totalMessages }
  const range = { beforeSeq: totalMessages + 1, pageSize: PAGE }
  for await (const page of messagePages(store, key, range)) {
    const text = page.map(messageLine).join('')
    yield { text, messages: page.length, throughSeq: page.at(-1)?.seq ?? 0, totalMessages }
  }
  for await (const text of artifactLines(store.artifacts, key, isWanted))
    yield { text, messages: 0, throughSeq: totalMessages, totalMessages }
}

/** Reads what `headerLine` and `messageLine` wrote. `source` is named in errors. */
export async function* readSessionLines(
  input: AsyncIterable<Uint8Array>,
  source: string,
): AsyncGenerator<SessionLine> {
  let line = 0
  for await (const text of linesOf(input, source)) {
    line += 1
    if (text.trim() === '') continue
    const data = parseLine(text, source, line)
    if (data.lango === 'session') {
      yield { line, header: checkHeader(data, source, line) }
    } else if (data.lango === 'artifact') {
      yield { line, artifact: data as unknown as ArtifactLine }
    } else {
      const { seq: _seq, tokens: _tokens, ...message } = data as unknown as StoredMessage
      yield { line, message }
    }
  }
}

/** A line may hold a large attachment; a longer one is not an export. */
const MOST_CHARACTERS = 256 * 1024 * 1024

/** Only LF ends a line: other line separators may occur inside JSON text. */
async function* linesOf(input: AsyncIterable<Uint8Array>, source: string): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  let pieces: string[] = []
  let waiting = 0
  let isFirst = true
  const complete = (last: string) => {
    const text = [...pieces, last].join('')
    pieces = []
    waiting = 0
    const whole = isFirst ? withoutBom(text) : text
    isFirst = false
    return whole
  }
  for await (const chunk of input) {
    const [first = '', ...others] = decoder.write(Buffer.from(chunk)).split('\n')
    let rest = first
    for (const next of others) {
      yield complete(rest)
      rest = next
    }
    pieces.push(rest)
    waiting += rest.length
    if (waiting > MOST_CHARACTERS)
      throw invalid(`A line of ${source} is longer than 256 MB: it is not a Lango export.`)
  }
  yield complete(decoder.end())
}

function parseLine(text: string, source: string, line: number): Record<string, unknown> {
  let data: unknown
  try {
    data = JSON.parse(text)
  } catch (error) {
    throw invalid(
      `Line ${line} of ${source} is not JSON (${messageOf(error).slice(0, 120)}): it is not a Lango export, or it was truncated.`,
    )
  }
  if (isRecord(data)) return data
  throw invalid(`Line ${line} of ${source} is not an object: it is not a Lango export.`)
}

function checkHeader(data: Record<string, unknown>, source: string, line: number): SessionHeader {
  if (data.version !== 1) {
    throw invalid(
      `Line ${line} of ${source} has version ${JSON.stringify(data.version)}, but this version of Lango reads version 1. Update Lango.`,
    )
  }
  const header = data as unknown as SessionHeader
  const names = [header.key?.appName, header.key?.userId, header.key?.sessionId]
  if (
    names.some(name => typeof name !== 'string') ||
    !isRecord(header.state ?? {}) ||
    !isTitle(header.title)
  ) {
    throw invalid(`Line ${line} of ${source} is not a session header: it needs key and state.`)
  }
  return { ...header, state: header.state ?? {} }
}

function isTitle(title: unknown): boolean {
  return title === undefined || typeof title === 'string'
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}

/** A session of a file. Its messages are read while they are stored. */
export interface ReadSession {
  key: SessionKey
  state: State
  title?: string | undefined
  /** The number of messages, when the file states it. */
  expected?: number | undefined
  messages: AsyncIterable<Message> | Iterable<Message>
  /** Fields of the file that are not in the messages. */
  leftOut?: readonly string[] | undefined
  notes?: readonly string[] | undefined
  /** Read after the messages. */
  artifacts?: AsyncIterable<ArtifactLine>
}

/** Sessions follow each other in one stream of lines; each is read completely before the next. */
export async function* readLangoExport(
  input: AsyncIterable<Uint8Array>,
  source: string,
): AsyncGenerator<ReadSession> {
  const lines = readSessionLines(input, source)
  let next = await lines.next()
  const untilHeader = async function* (): AsyncGenerator<Message> {
    for (next = await lines.next(); !next.done && 'message' in next.value; next = await lines.next()) {
      yield next.value.message
    }
  }
  const artifacts = async function* (): AsyncGenerator<ArtifactLine> {
    for (; !next.done && 'artifact' in next.value; next = await lines.next()) yield next.value.artifact
  }
  if (next.done) throw new AgentError('invalid-argument', `${source} is empty.`)
  while (!next.done) {
    if (!('header' in next.value)) {
      throw new AgentError(
        'invalid-argument',
        `Line ${next.value.line} of ${source} is not a session header: the file is not a Lango export, or its beginning is missing.`,
      )
    }
    const { key, state, title, messages } = next.value.header
    yield { key, state, title, expected: messages, messages: untilHeader(), artifacts: artifacts() }
  }
}
