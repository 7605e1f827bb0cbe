import type { IncomingMessage, ServerResponse } from 'node:http'
import { defined } from '../../base/defined.js'
import { AgentError, messageOf } from '../../errors.js'
import { familyOf } from './families.js'
import { type Family, type HttpError, planAnswer, type Route } from './family.js'
import { estimateTokens, isObject, type JsonObject, listOf, objectOf, textOf } from './json.js'
import { type JudgeOptions, judgeContext, notAnObject } from './judge.js'
import { PROFILE_FACTS, type Reading, type StrictPlatform, type StrictProfile } from './profile.js'
import type { Fault, Quirk, RequestSummary, Script, ScriptStep, SummaryMessage } from './script.js'
import { freshToken } from './seal.js'
import { sendAnswer, sendJson } from './send-answer.js'
import type { JudgeContext, LimitsReading, Violation } from './violation.js'

/** The settings of a strict server. */
export interface StrictServerSettings {
  readonly profile: StrictProfile
  /** Serves the profile as Azure, Bedrock or Vertex AI do: their paths, keys, errors and streams. */
  readonly platform?: StrictPlatform
  /** The only models, or deployments, of a platform. Default: any. */
  readonly models?: readonly string[]
  readonly script?: Script
  readonly faults?: readonly Fault[]
  readonly quirks?: readonly Quirk[]
  readonly reading?: Reading
  /** The reading of media limits on which sources disagree. Default `documented`. */
  readonly limits?: LimitsReading
  readonly contextWindow?: number
  readonly apiKey?: string
  /**
   * The account of the server, an organisation or a resource: what it seals is refused by servers of other accounts. Default:
   * none, which accepts what any account has sealed.
   */
  readonly account?: string
  /** How many requests a second are answered; others get the vendor's 429 with a Retry-After. */
  readonly requestsPerSecond?: number
}

/** A request as it came, without the key. */
export interface RecordedRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** The parsed body, or its text when it is not JSON. */
  readonly body: unknown
}

/** A rule that was broken, and by which request. */
export interface RecordedViolation extends Violation {
  /** Index in `requests`. */
  readonly requestIndex: number
}

const SECRET_HEADERS = [
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'x-amz-security-token',
  'cookie',
]
const MAXIMUM_BODY_BYTES = 64 * 1024 * 1024

/** One fake provider: the requests it received, what it refused, and how it answers. */
export class StrictServer {
  readonly requests: RecordedRequest[] = []
  readonly violations: RecordedViolation[] = []
  readonly #settings: StrictServerSettings
  readonly #family: Family
  readonly #stored = new Map<string, readonly JsonObject[]>()
  #nextStep = 0
  #taken: number[] = []

  constructor(settings: StrictServerSettings) {
    this.#settings = settings
    this.#family = familyOf(settings.profile, settings.platform)
  }

  baseUrl(origin: string): string {
    return this.#family.baseUrl(origin, this.#context({}))
  }

  /** Answers one HTTP request; an error in here is answered as the vendor's 500. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#answer(new Exchange(request, response))
    } catch (error) {
      const body = {
        error: { message: `The strict server failed: ${messageOf(error)}`, type: 'server_error' },
      }
      if (!response.headersSent) sendJson(response, { status: 500, body })
      else response.destroy()
    }
  }

  async #answer(exchange: Exchange): Promise<void> {
    const { method, url, headers } = exchange
    const context = this.#context(headers)
    const route = this.#family.route(method, url.pathname, url.searchParams)
    if (route === undefined) return exchange.refuse(this.#family.notFound(method, url.pathname, context))
    const key = this.#family.keyOf(headers, url.searchParams)
    if (this.#settings.apiKey !== undefined && key !== this.#settings.apiKey) {
      return exchange.refuse(this.#family.fault({ kind: 'auth' }, context))
    }
    if (route.kind === 'list-models') return exchange.json(this.#family.listModels(this.#model))
    if (route.kind === 'get-model') return exchange.json(this.#family.listModels(this.#model, route.model))
    const text = await exchange.readText(MAXIMUM_BODY_BYTES)
    const body = parseJson(text)
    const index = this.requests.push(exchange.record(body === undefined ? text : body)) - 1
    await this.#answerBody(exchange, { route, body, index })
  }

  async #answerBody(exchange: Exchange, call: Call): Promise<void> {
    const plain = isObject(call.body)
      ? this.#family.unwrap?.(call.body, call.route, exchange.headers)
      : undefined
    const context = this.#context({ ...exchange.headers, ...plain?.headers }, call.route)
    exchange.wrapsErrors = call.route.isList === true
    const fault = this.#settings.faults?.find(({ at }) => at === undefined || at === call.index)
    const refusal: Fault | undefined = this.#isOverLimit() ? { kind: '429', retryAfter: 1 } : fault
    const failure = refusal === undefined ? undefined : this.#family.fault(refusal, context)
    if (failure !== undefined) return exchange.refuse(failure)
    const unknown = this.#unknownModel(call)
    if (unknown !== undefined) return exchange.refuse(unknown)
    const sent = plain?.body ?? call.body
    const violations = plain?.violation
      ? [plain.violation]
      : isObject(sent)
        ? this.#family.judge(sent, context)
        : [notAnObject(context.profile)]
    const first = violations.find(({ status }) => status >= 400) ?? violations[0]
    if (first !== undefined) this.violations.push({ ...first, requestIndex: call.index })
    if (first !== undefined && first.status >= 400)
      return exchange.refuse(this.#family.refusal(first, context))
    const body = sent as JsonObject
    if (call.route.kind === 'count-tokens') return exchange.json(this.#family.countTokens(body))
    await this.#generate(exchange, { ...call, body }, { context, fault, empty: first !== undefined })
  }

  #unknownModel({ route, body }: Call): HttpError | undefined {
    const model = route.model ?? textOf(objectOf(body).model)
    return this.#settings.models?.includes(model) === false ? this.#family.unknownModel?.(model) : undefined
  }

  /** Whether this request is one too many in the last second. */
  #isOverLimit(): boolean {
    const { requestsPerSecond } = this.#settings
    if (requestsPerSecond === undefined) return false
    const now = Date.now()
    this.#taken = this.#taken.filter(at => now - at < 1000)
    if (this.#taken.length >= requestsPerSecond) return true
    this.#taken.push(now)
    return false
  }

  async #generate(exchange: Exchange, call: Call & { body: JsonObject }, terms: Terms): Promise<void> {
    const { context, fault, empty } = terms
    const { body, route } = call
    const summary = this.#family.summarize(body, route)
    const step = withFault(await this.#step(summary, call.index, fault === undefined), fault, summary)
    const stream = summary.stream && route.isList !== true
    if (fault?.kind === 'error-in-stream' && !stream) {
      return exchange.refuse(this.#family.fault({ kind: '500' }, context))
    }
    const answer = this.#family.render({
      plan: planAnswer(step, estimateTokens(body)),
      summary,
      body,
      context,
      quirks: context.quirks,
      empty,
      remember: (id, items) => void this.#stored.set(id, items),
    })
    await sendAnswer({
      response: exchange.response,
      answer,
      stream,
      fault,
      framing: this.#family.framing,
      headers: { 'x-request-id': `req_${freshToken(24)}` },
      streamError: this.#family.streamError(context),
      wrap: value => (exchange.wrapsErrors ? [value] : value),
    })
  }

  /** What the model says now. A step of a list is only used up when it will be delivered. */
  async #step(summary: RequestSummary, index: number, delivered: boolean): Promise<ScriptStep> {
    const { script } = this.#settings
    if (typeof script === 'function') return script(summary, index)
    const step = script?.[this.#nextStep]
    if (delivered) this.#nextStep += 1
    return step ?? defaultModel(summary)
  }

  get #model(): string {
    return PROFILE_FACTS[this.#settings.profile].model
  }

  #context(headers: Readonly<Record<string, string>>, route?: Route): JudgeContext {
    const { reading, limits, platform, quirks, contextWindow, account } = this.#settings
    const options: JudgeOptions = {
      ...defined({ reading, limits, platform, quirks, contextWindow, account }),
      headers,
      countOnly: route?.kind === 'count-tokens',
      stored: this.#stored,
    }
    return judgeContext(this.#settings.profile, options)
  }
}

interface Call {
  readonly route: Route
  readonly body: unknown
  readonly index: number
}

interface Terms {
  readonly context: JudgeContext
  readonly fault: Fault | undefined
  readonly empty: boolean
}

/** Faults that are part of the answer: a blocked prompt, a call that the model failed to write. */
function withFault(step: ScriptStep, fault: Fault | undefined, summary: RequestSummary): ScriptStep {
  if (fault?.kind === 'blocked') return { finish: 'blocked' }
  if (fault?.kind !== 'malformed-call') return step
  const name = summary.tools[0]?.name ?? 'unknown'
  const toolCalls = step.toolCalls ?? [{ name, args: { broken: 'in the middle' } }]
  return { ...step, toolCalls, finish: 'malformed-call' }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** One request and its response, read and written in the server's terms. */
class Exchange {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly response: ServerResponse
  wrapsErrors = false
  readonly #request: IncomingMessage

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request
    this.response = response
    this.method = request.method ?? 'GET'
    this.url = new URL(request.url ?? '/', 'http://strict.server')
    this.headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    )
  }

  async readText(limit: number): Promise<string> {
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of this.#request as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > limit) throw new AgentError('invalid-argument', `The request is larger than ${limit} bytes.`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString('utf8')
  }

  record(body: unknown): RecordedRequest {
    const query = new URLSearchParams(this.url.searchParams)
    query.delete('key')
    const path = query.size === 0 ? this.url.pathname : `${this.url.pathname}?${query}`
    const headers = Object.fromEntries(
      Object.entries(this.headers).filter(([name]) => !SECRET_HEADERS.includes(name)),
    )
    return { method: this.method, path, headers, body }
  }

  json(body: unknown): void {
    sendJson(this.response, { status: 200, body })
  }

  refuse(error: HttpError | undefined): void {
    const { status, body, headers } = error ?? { status: 500, body: {} }
    sendJson(this.response, {
      status,
      body: this.wrapsErrors ? [body] : body,
      ...(headers === undefined ? {} : { headers }),
    })
  }
}

const ASKS_FOR_A_TOOL = /\b(use|call|run|invoke|tool|search|find|look up|check|weather|calculate)\b/i

/**
 * The model that answers when there is no script: it calls a tool once when it is asked to, reports what the
 * tool said, and otherwise repeats what it heard.
 */
export function defaultModel(request: RequestSummary): ScriptStep {
  const last = request.messages.at(-1)
  if (last !== undefined && last.toolResults.length > 0) return { text: reportResults(last) }
  const name = toolAskedFor(request)
  if (name === undefined) return { text: `You said: ${request.lastUserText || '(nothing)'}` }
  const tool = request.tools.find(candidate => candidate.name === name)
  return { toolCalls: [{ name, args: objectOf(plausibleValue(tool?.parameters, request.lastUserText)) }] }
}

function reportResults(message: SummaryMessage): string {
  return message.toolResults
    .map(result => `The tool${result.name ? ` ${result.name}` : ''} returned: ${result.content}`)
    .join('\n')
}

function toolAskedFor(request: RequestSummary): string | undefined {
  const { toolChoice, tools, lastUserText } = request
  if (toolChoice === 'none' || tools.length === 0) return undefined
  if (typeof toolChoice === 'object') return toolChoice.name
  const mentioned = tools.find(tool => tool.name !== '' && lastUserText.includes(tool.name))
  if (mentioned !== undefined) return mentioned.name
  return toolChoice === 'required' || ASKS_FOR_A_TOOL.test(lastUserText) ? tools[0]?.name : undefined
}

/** A value that a JSON schema (or Gemini's upper-case subset of one) accepts. */
function plausibleValue(schema: unknown, hint: string): unknown {
  if (!isObject(schema)) return {}
  if (schema.default !== undefined) return schema.default
  const choices = listOf(schema.enum)
  if (choices.length > 0) return choices[0]
  const alternative = listOf(schema.anyOf)[0] ?? listOf(schema.oneOf)[0]
  if (alternative !== undefined) return plausibleValue(alternative, hint)
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  switch (String(type).toLowerCase()) {
    case 'string':
      return hint.slice(0, 80) || 'example'
    case 'number':
    case 'integer':
      return typeof schema.minimum === 'number' ? schema.minimum : 1
    case 'boolean':
      return true
    case 'array':
      return []
    case 'null':
      return null
    default:
      return plausibleObject(schema, hint)
  }
}

function plausibleObject(schema: JsonObject, hint: string): JsonObject {
  const properties = objectOf(schema.properties)
  const required = new Set(listOf(schema.required))
  const names = Object.keys(properties).filter(name => required.size === 0 || required.has(name))
  return Object.fromEntries(names.map(name => [name, plausibleValue(properties[name], hint)]))
}
