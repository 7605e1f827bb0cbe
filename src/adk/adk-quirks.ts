/**
 * What ADK does with contents and names that Lango has to work around. `test/contract` pins ADK's behaviour.
 * This file imports types only, because converters that use it must not load ADK.
 *
 * Who wrote a content that has the user's role, the user or a program in that role:
 *
 * - ADK copies the contents of its events into each request and rewrites those of other agents and of
 *   compacted history as new contents. The mark below is a property by symbol: ADK's copies keep it, its new
 *   contents do not have it, and it never appears in JSON, stored rows or wire bodies.
 * - The session service marks what it gives to ADK by role and metadata. A marked content is never judged by
 *   its text.
 * - A content without a mark (a model adapter under another session service, contents that a callback made) is
 *   the user's, unless it has the whole shape of ADK's account of another agent's event.
 */

import { isRecord } from '../base/is-record.js'
import { CONFIRMATION_TOOL } from '../base/names.js'
import { own } from '../base/own.js'
import type { AgentError } from '../errors.js'
import type { ServerTool } from '../provider/provider.js'
import type { BaseLlm, Content, Event, LlmAgent, Part } from './sdk.js'

/** `program`: a correction by Lango, an account by ADK. */
export type WrittenBy = 'user' | 'program'

const MARK = Symbol.for('lango.written-by')
const NUMBER = Symbol.for('lango.message-number')
const ANSWER = Symbol.for('lango.answer')

/** A content with the fields that only Lango knows. */
interface Marked extends Content {
  readonly [MARK]?: unknown
  readonly [NUMBER]?: unknown
  readonly [ANSWER]?: AnswerMark
}

/** A copy of the content that says who wrote it. */
export function markWrittenBy(content: Content, writtenBy: WrittenBy): Content {
  return Object.assign({ ...content }, { [MARK]: writtenBy })
}

/** Who wrote a content of the user's role. */
export function writtenBy(content: Content): WrittenBy {
  // A cast: ADK's type knows none of these fields.
  const mark = (content as Marked)[MARK]
  if (mark === 'user' || mark === 'program') return mark
  return hasShapeOfAccount(content) ? 'program' : 'user'
}

/** A copy of the content with the number of its stored message. ADK's copies keep it, like the mark above. */
export function markNumber(content: Content, seq: number): Content {
  return Object.assign({ ...content }, { [NUMBER]: seq })
}

/** The number of the stored message that a content comes from, where it is known. */
export function numberOf(content: Content): number | undefined {
  const number = (content as Marked)[NUMBER]
  return typeof number === 'number' ? number : undefined
}

/** Where an answer came from. */
export interface AnswerMark {
  /** As `provider/model`. */
  readonly model?: string | undefined
  /** The tag of the provider account that has sealed its signatures. */
  readonly account?: string | undefined
}

/** A copy of the content that says where it came from. */
export function markAnswer(content: Content, mark: AnswerMark): Content {
  return Object.assign({ ...content }, { [ANSWER]: mark })
}

/** Where a content came from, if it is an answer of which that is known. */
export function answerMarkOf(content: Content): AnswerMark | undefined {
  return (content as Marked)[ANSWER]
}

/** Whether a content is ADK's account of another agent's event. */
export function isAccountByAdk(content: Content): boolean {
  return (content as Marked)[MARK] === undefined && hasShapeOfAccount(content)
}

/** A heading in a part of its own, and then only what ADK writes of an agent's words, calls and results. */
function hasShapeOfAccount({ parts = [] }: Content): boolean {
  const [heading, ...others] = parts
  return heading?.text === ACCOUNT_HEADING && others.length > 0 && others.every(isAccountPart)
}

/** The first part of ADK's account of another agent's event. */
export const ACCOUNT_HEADING = 'For context:'

/** Thoughts, media and code are copied along as they are. */
function isAccountPart({ text, thought }: Part): boolean {
  return !text || thought === true || ACCOUNT_TEXT.test(text)
}

const ACCOUNT_TEXT = /^\[[^\]]+\] (?:said: |called tool `|tool `)/

/**
 * ADK looks tools and state up with `in` and with `object[name]`, which also find what every object inherits:
 * `constructor`, `toString`, `__proto__` and their kin. Objects that ADK looks foreign names up in lose their
 * prototype here, in place, because ADK holds on to the object that it made.
 */
export function withoutInheritedNames<Fields extends object>(fields: Fields): Fields {
  if (Object.getPrototypeOf(fields) !== null) Object.setPrototypeOf(fields, null)
  return fields
}

/**
 * ADK calls the model again after a tool that has escalated, unless the tool also skips the summary: the loop ends
 * whatever the model says, and most models say nothing. ADK passes no such fact to the model, so requests are marked.
 */
const maySayNothing = new WeakSet<object>()

/** An empty answer to this request is accepted, and not requested again. */
export function acceptSilence(llmRequest: object): void {
  maySayNothing.add(llmRequest)
}

export function acceptsSilence(llmRequest: object): boolean {
  return maySayNothing.has(llmRequest)
}

/** ADK's code of an error whose text is not Google's JSON. */
export const UNKNOWN_ERROR = 'UNKNOWN_ERROR'

const vendorCodes = new Map<string, string>()
const MOST_CODES = 200

/**
 * ADK reduces a model's error to its text, and its event has `UNKNOWN_ERROR` for a code. The vendor's code is found again by
 * the text: a status of HTTP, as ADK shows those of its own Gemini model, or else what the vendor calls the error.
 */
export function keepVendorCode({ message, details }: AgentError): void {
  const code = details.status ?? details.providerCode
  if (code === undefined) return
  if (vendorCodes.size >= MOST_CODES) vendorCodes.delete(vendorCodes.keys().next().value ?? '')
  vendorCodes.set(message, String(code))
}

export function vendorCodeOf(message: string): string | undefined {
  return vendorCodes.get(message)
}

/** An instruction that ADK takes as it is: a string would be searched for {placeholders}. */
export function verbatim(instruction: string): () => string {
  return () => instruction
}

type RequestProcessor = LlmAgent['requestProcessors'][number]

/** ADK refuses a tool called `constructor` as a duplicate: it finds the name in its own, still empty table. */
export function takeAnyToolName(agent: LlmAgent): LlmAgent {
  const { requestProcessors } = agent
  if (!requestProcessors.includes(PLAIN_TOOL_TABLE)) requestProcessors.unshift(PLAIN_TOOL_TABLE)
  return agent
}

const PLAIN_TOOL_TABLE: RequestProcessor = {
  // biome-ignore lint/correctness/useYield: ADK's processors may emit events; this one has none.
  async *runAsync(_invocation, llmRequest) {
    withoutInheritedNames(llmRequest.toolsDict)
  },
}

/**
 * ADK's own tools for what Gemini's servers do refuse models whose names do not begin with `gemini-`. Whether a model
 * has such a tool, or one like it, is for its provider to say: here such a tool sees a name that it accepts, while it
 * adds itself to a request for a model of Lango's.
 */
export function takeServerTools(agent: LlmAgent, reference: string | undefined): void {
  if (reference) references.add(reference)
  for (const tool of agent.tools as unknown as Declaring[]) if (isServerTool(tool)) showGeminiName(tool)
  if (isBuiltInExecutor(agent.codeExecutor)) showGeminiName(agent.codeExecutor)
}

/** The tools that an agent asks the servers of its model for, as far as ADK's own tools do. */
export function serverToolsOf(agent: LlmAgent): ServerTool[] {
  const names = (agent.tools as unknown as Declaring[]).flatMap(tool =>
    isServerTool(tool) ? [own(SERVER_TOOLS, tool.name ?? '') as string] : [],
  )
  if (isBuiltInExecutor(agent.codeExecutor)) names.push('codeExecution')
  return names.map(name => ({ name, config: {} }))
}

const references = new Set<string>()
const shown = new WeakSet<object>()

/** By the name of ADK's tool, the name of Gemini's. */
const SERVER_TOOLS: Readonly<Record<string, string>> = {
  enterprise_web_search: 'enterpriseWebSearch',
  google_maps: 'googleMaps',
  google_search: 'googleSearch',
  url_context: 'urlContext',
  vertex_ai_search: 'retrieval',
  vertex_rag_retrieval: 'retrieval',
}

/** Something that adds itself to requests: a tool takes the request within an object, a code executor as it is. */
interface Declaring {
  name?: string
  _getDeclaration?(): unknown
  processLlmRequest(request: { model?: string; llmRequest?: { model?: string } }): unknown
}

/** A tool of that name which declares a function is somebody else's. */
function isServerTool(tool: Declaring): boolean {
  return own(SERVER_TOOLS, tool.name ?? '') !== undefined && tool._getDeclaration?.() === undefined
}

const BUILT_IN_EXECUTOR = Symbol.for('google.adk.builtInCodeExecutor')

function isBuiltInExecutor(executor: unknown): executor is Declaring {
  return (
    typeof executor === 'object' && executor !== null && Reflect.get(executor, BUILT_IN_EXECUTOR) === true
  )
}

function showGeminiName(tool: Declaring): void {
  if (shown.has(tool)) return
  shown.add(tool)
  const process = tool.processLlmRequest.bind(tool)
  tool.processLlmRequest = request => {
    const llmRequest = request.llmRequest ?? request
    const { model } = llmRequest
    if (model === undefined || !references.has(model)) return process(request)
    llmRequest.model = /(?:^|\/)(gemini-[^/]*)$/.exec(model)?.[1] ?? ANY_GEMINI
    const restore = () => {
      llmRequest.model = model
    }
    const done = process(request)
    if (done instanceof Promise) return done.finally(restore)
    restore()
    return done
  }
}

/** Any name of the second generation or later. */
const ANY_GEMINI = 'gemini-2.5-flash'

/**
 * ADK reports what went wrong inside a run as words. This file is the only one that reads them; a contract
 * test holds each text, so that an upgrade of ADK which changes one fails there and not in production.
 */

type AdkFailure =
  | { kind: 'unknown-agent'; name: string }
  | { kind: 'unknown-tool'; name: string }
  | { kind: 'model-call-limit' }
  | { kind: 'other' }

const PATTERNS: readonly { kind: AdkFailure['kind']; pattern: RegExp }[] = [
  { kind: 'unknown-agent', pattern: /^Agent (.+) not found in the agent tree\.$/ },
  { kind: 'unknown-agent', pattern: /failed to find agent: (.+?)\.?$/ },
  { kind: 'unknown-tool', pattern: /^Function (.+) is not found in the toolsDict\.$/ },
  { kind: 'model-call-limit', pattern: /^Max number of llm calls limit of/ },
]

/**
 * What an error message of ADK means. `whole`: the words must be all of it, because somebody else than ADK may
 * have quoted them in a longer sentence.
 */
export function adkFailure(message: string, { whole = false } = {}): AdkFailure {
  for (const { kind, pattern } of PATTERNS) {
    const found = pattern.exec(message)
    if (!found || (whole && found.index > 0)) continue
    if (kind === 'unknown-agent' || kind === 'unknown-tool') return { kind, name: found[1] ?? '' }
    return { kind: 'model-call-limit' }
  }
  return { kind: 'other' }
}

/**
 * ADK drops the response of a tool that requests a confirmation while it runs, and refuses the answer because it then
 * finds no such response (`confirmation_not_required`). Before the request that an event answers, a response is added that
 * names what was requested. The response of the confirmed call replaces it.
 */
export function restoreRequests(events: Event[], answer: Event): void {
  const answered = new Set(
    answer.content?.parts?.flatMap(({ functionResponse }) => functionResponse?.id ?? []),
  )
  for (let at = events.length - 1; at >= 0; at--) {
    const event = events[at]
    const requested = (event?.content?.parts ?? []).flatMap(({ functionCall }) =>
      functionCall?.name === CONFIRMATION_TOOL && answered.has(functionCall.id ?? '')
        ? functionCall.args
        : [],
    )
    if (event && requested.length > 0) events.splice(at, 0, requestOf(event, requested))
  }
}

/** How the id of such a response ends. */
const REQUESTED = ':requested'

/** Whether an event is such a response: it is ADK's to find, and no model's to read. */
export function isRequestStandIn({ id }: Event): boolean {
  return id.endsWith(REQUESTED)
}

function requestOf(event: Event, requested: readonly unknown[]): Event {
  const calls = requested.map(
    args => Reflect.get(Object(args), 'originalFunctionCall') as Part['functionCall'],
  )
  const parts = calls.map(call => ({
    functionResponse: { id: call?.id ?? '', name: call?.name ?? '', response: { status: 'requested' } },
  }))
  const { requestedToolConfirmations } = event.actions
  const nothing = { stateDelta: {}, artifactDelta: {}, requestedAuthConfigs: {} }
  return {
    ...event,
    id: `${event.id}${REQUESTED}`,
    longRunningToolIds: [],
    content: { role: 'user', parts },
    actions: { ...nothing, requestedToolConfirmations: { ...requestedToolConfirmations } },
  }
}

/** ADK takes any number of answers from one call of a model. These give exactly one. */
const single = new WeakSet<object>()

/** The model gives exactly one answer to each request. */
export function answersOnce(model: object): void {
  single.add(model)
}

/**
 * The model of an agent, or of the nearest agent above it that has one, where it may give several answers. ADK makes a
 * model anew for each call by a name that only its registry knows: there is none to be found then.
 */
export function modelOfSeveral(agent: object | undefined): BaseLlm | undefined {
  const { model, parentAgent } = (agent ?? {}) as { model?: unknown; parentAgent?: object }
  if (!model) return parentAgent && modelOfSeveral(parentAgent)
  return typeof model === 'object' && !single.has(model) ? (model as BaseLlm) : undefined
}

/** ADK recognizes an abort by this name of an error: such a node is not run again. */
export const ADK_ABORT = 'InvocationAbortedError'

/** A request to a service of ADK. Releases after 2.0.0 name the session in `scope`, 2.0.0 next to the other fields. */
export function withoutScope<Request extends object>(request: Request): Request {
  const { scope, ...others } = request as Request & { scope?: unknown }
  return isRecord(scope) ? ({ ...scope, ...others } as unknown as Request) : request
}
