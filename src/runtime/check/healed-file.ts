/**
 * A broken history, healed, as a file. A request stays a request on its own wire: its messages are written anew by the
 * provider that would send them, and everything beside them stays as it was. Any other history becomes a Lango export.
 * What is written is checked again, so that what repair cannot cure (an option, a field) is reported.
 */
import { isRecord } from '../../base/is-record.js'
import { inSlices } from '../../base/pause.js'
import { stableJson } from '../../base/stable-json.js'
import { readConverse } from '../../formats/converse-messages.js'
import type { FileHistory, HistoryFile } from '../../formats/history-files.js'
import { neutralToMessages } from '../../formats/neutral-to-messages.js'
import { headerLine, messageLine } from '../../formats/session-lines.js'
import { readAnthropic, readChat, readGemini, readResponses } from '../../formats/wire-messages.js'
import { type Fields, listOf, text, type WireMessage } from '../../formats/wire-parts.js'
import type { ProviderMessage } from '../../provider/provider.js'
import { createProvider } from '../../provider/provider-registry.js'
import { resolveProfile } from '../../provider/repair/profile.js'
import type { RequestEvent } from '../../provider/stream-event.js'
import type { Message } from '../../session/message.js'
import {
  PROFILE_FACTS,
  type ProfileFacts,
  STRICT_PROFILES,
  type StrictProfile,
} from '../../testing/strict/profile.js'
import { heal } from '../heal/heal.js'
import type { ProfileLint } from '../info.js'
import { profileProvider } from '../profile-provider.js'
import { HEALED_NAMES, wireProfiles } from './check-histories.js'
import { lintRequest } from './lint-request.js'
import { type Problem, problemsOf } from './problems.js'

export interface HealedFile {
  fileName: string
  text: string
  /** The profile that a request was written for. */
  profile?: string
  /** What the file is, and what of it is not as it was. */
  note: string
  /** What the provider still rejects: repair does not touch what is beside the messages. */
  left: Problem[]
}

/** The profiles of a request's own wire among those that it was checked against, the one that rejects the most first. */
export function profilesToHealFor(checked: readonly ProfileLint[], read: HistoryFile): string[] {
  const own = wireProfiles({ candidates: read.candidates.slice(0, 1) })
  return [...checked]
    .sort((one, other) => other.breaks - one.breaks)
    .flatMap(({ profile }) => (own.includes(profile) ? profile : []))
}

/**
 * Heals one history. `profiles` are those of the wire that a request was written for, the one to heal for first.
 * `exportName` is the file that a Lango export is written to.
 */
export async function healedFile(
  history: FileHistory,
  profiles: readonly string[],
  exportName: string = HEALED_NAMES.export,
): Promise<HealedFile> {
  if (history.kind === 'request') {
    const profile = STRICT_PROFILES.find(name => name === profiles[0])
    const family = profile && PROFILE_FACTS[profile].family
    if (profile && family) return healedRequest(history, profile, family)
  }
  const messages =
    history.kind === 'session' ? history.messages : neutralToMessages(history.messages, { now: Date.now() })
  const healed = heal(messages).messages
  const sessionId = `${history.name || 'history'}-healed`
  const session = {
    key: { appName: 'lango', userId: 'user', sessionId },
    state: {},
    createdAt: messages[0]?.timestamp ?? Date.now(),
    updatedAt: Date.now(),
    totalMessages: healed.length,
    messages: [],
  }
  const text = await inSlices(lines(headerLine(session), healed))
  const note = `A Lango export. Take it over with: lango sessions import ${exportName}`
  return { fileName: exportName, text, note, left: [] }
}

function* lines(header: string, messages: readonly Message[]): Generator<void, string, void> {
  const written = [header]
  for (const message of messages) {
    written.push(messageLine(message))
    yield
  }
  return written.join('')
}

type RequestHistory = FileHistory & { kind: 'request' }

async function healedRequest(
  { messages, body }: RequestHistory,
  profile: StrictProfile,
  family: ProfileFacts['family'],
): Promise<HealedFile> {
  const { model } = PROFILE_FACTS[profile]
  const named = text(body.model) || text(body.modelId) || model
  const { body: written } = await bodyFor(messages, profile, named)
  const healed = merged(body, withoutCacheMarks(written, WIRES[family]), family)
  const again = { messages: WIRES[family].read(healed), body: healed }
  const verdict = lintRequest(again, resolveProfile(profile))
  const left = problemsOf([verdict], ({ at }) => again.messages[at]?.place ?? `message ${at + 1}`)
  const note = `The same request with its messages repaired for ${profile}. Cache marks and ids of items are not written again.`
  return { fileName: HEALED_NAMES.request, text: `${JSON.stringify(healed, null, 2)}\n`, profile, note, left }
}

/** Lango marks what it sends; with the marks of the given request there could be more than Claude accepts. */
function withoutCacheMarks(written: Fields, { list, system = '', tools }: WireFacts): Fields {
  const unmarked = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(each => {
          if (!isRecord(each)) return each
          const { cache_control: _mark, ...block } = each
          return block
        })
      : value
  const messages = listOf(written[list]).map(each =>
    isRecord(each) && Array.isArray(each.content) ? { ...each, content: unmarked(each.content) } : each,
  )
  const others = [system, tools].filter(name => written[name] !== undefined)
  return {
    ...written,
    [list]: messages,
    ...Object.fromEntries(others.map(name => [name, unmarked(written[name])])),
  }
}

/** The request that the provider of a profile would send. Nothing is sent: the request is reported before. */
export async function bodyFor(
  messages: readonly ProviderMessage[],
  profile: StrictProfile,
  model: string,
): Promise<Pick<RequestEvent, 'repairs' | 'mappedIds'> & { body: Fields }> {
  const provider = createProvider(profileProvider(profile, 'http://127.0.0.1:9'))
  const neutral = messages.map(({ role, parts }) => ({ role, parts }))
  for await (const event of provider.generate({ model, messages: neutral })) {
    if (event.type === 'error') throw event.error
    if (event.type === 'request') return { ...event, body: isRecord(event.body) ? event.body : {} }
  }
  return { body: {}, repairs: [], mappedIds: {} }
}

export interface WireFacts {
  /** The field of the messages, and the one of the instruction where the wire has one. */
  list: string
  system?: string
  tools: string
  read: (body: Fields) => WireMessage[]
}

export const WIRES: Readonly<Record<ProfileFacts['family'], WireFacts>> = {
  gemini: { list: 'contents', system: 'systemInstruction', tools: 'tools', read: readGemini },
  anthropic: { list: 'messages', system: 'system', tools: 'tools', read: readAnthropic },
  'openai-chat': { list: 'messages', tools: 'tools', read: readChat },
  'openai-responses': { list: 'input', system: 'instructions', tools: 'tools', read: readResponses },
  converse: { list: 'messages', system: 'system', tools: 'toolConfig', read: readConverse },
}

/** The given body with the repaired messages. An instruction that repair did not change stays in its own writing. */
function merged(body: Fields, written: Fields, family: ProfileFacts['family']): Fields {
  const { list, system, tools, read } = WIRES[family]
  const healed: Fields = { ...body, [list]: written[list] }
  if (body[tools] === undefined && written[tools] !== undefined && !isRecord(body.config))
    healed[tools] = written[tools]
  if (system === undefined) return healed
  const instructionOf = (from: Fields) =>
    stableJson(read(from).find(({ place }) => place === system)?.parts ?? [])
  const isSame = instructionOf(body) === instructionOf(written)
  if (!isSame && written[system] !== undefined) healed[system] = written[system]
  return healed
}
