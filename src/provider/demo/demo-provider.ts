/**
 * A model without a model: it needs no key and no network, answers by a few rules, really calls the tools it
 * is given, and says in every answer that it is a demo. Good for a first start, for examples and for tests.
 */

import { TRANSFER_TOOL } from '../../base/names.js'
import { AgentError } from '../../errors.js'
import { FREE } from '../../session/usage.js'
import { AnswerAssembly } from '../assemble-stream.js'
import { describeModel } from '../model-catalog.js'
import type { GenerateRequest, ModelInfo, Provider, ProviderMessage, ToolResultPart } from '../provider.js'
import { abortedError, toProviderError } from '../provider-error.js'
import type { ProviderSettings } from '../provider-settings.js'
import { repairHistory } from '../repair/repair-history.js'
import type { StreamEvent } from '../stream-event.js'

const PROFILE = 'openai-chat'

const PAUSE_MS = 5

/** Answers offline, by simple rules. */
export class DemoProvider implements Provider {
  readonly id: string
  readonly #settings: ProviderSettings

  constructor(settings: ProviderSettings) {
    this.#settings = settings
    this.id = settings.id
  }

  async *generate(request: GenerateRequest, signal?: AbortSignal): AsyncGenerator<StreamEvent> {
    const context = { provider: this.id, model: request.model, signal }
    try {
      const mode = request.repairMode ?? 'repair'
      const { messages, repairs, mappedIds } = repairHistory(request.messages, PROFILE, { mode })
      const body = { model: request.model, messages, tools: request.tools ?? [] }
      yield { type: 'request', model: request.model, profile: PROFILE, repairs, mappedIds, body }
      const answer = new AnswerAssembly({ ...context, origin: { vendor: 'demo', model: request.model } })
      for (const event of respond(request, messages, answer)) {
        // A pause between words makes the stream one that can be seen.
        await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
        if (signal?.aborted) throw abortedError(context)
        yield event
      }
    } catch (error) {
      yield { type: 'error', error: toProviderError(error, context) }
    }
  }

  describeModel(model: string): ModelInfo {
    return {
      price: FREE,
      ...describeModel('demo', model, { models: this.#settings.models }),
      name: 'Demo (offline)',
      known: true,
    }
  }

  async listModels(): Promise<ModelInfo[]> {
    return [this.describeModel('demo')]
  }
}

function* respond(
  request: GenerateRequest,
  messages: readonly ProviderMessage[],
  answer: AnswerAssembly,
): Generator<StreamEvent> {
  // As given: repair joins the user's words with what programs wrote in that role.
  const turn = currentTurn(request.messages)
  const toolNames = (request.tools ?? []).map(({ name }) => name)
  const call = nextCall(request, turn, messages, toolNames)
  const words = call ? `I will use ${call.name}.` : answerText(turn, toolNames)
  for (const piece of words.match(/\S+\s*/g) ?? []) yield* answer.text(piece)
  if (call) yield* answer.call(call)
  answer.usage({ inputTokens: estimate(JSON.stringify(messages)), outputTokens: estimate(words) })
  answer.finish('stop')
  yield* answer.end()
}

interface Turn {
  /** What the user last said. */
  text: string
  /** What tools have answered since. */
  results: readonly ToolResultPart[]
  /** Tools called since. */
  called: ReadonlySet<string>
}

function currentTurn(messages: readonly ProviderMessage[]): Turn {
  const start = messages.findLastIndex(message => saidBy(message) !== '')
  const since = messages.slice(start + 1).flatMap(message => message.parts)
  const user = messages[start]
  return {
    text: user ? saidBy(user) : '',
    results: since.filter(part => part.type === 'tool-result'),
    called: new Set(since.flatMap(part => (part.type === 'tool-call' ? [part.name] : []))),
  }
}

/** A tool that the words fit; else, once in a turn, another agent that they fit. */
function nextCall(
  request: GenerateRequest,
  turn: Turn,
  messages: readonly ProviderMessage[],
  toolNames: readonly string[],
): { name: string; args: Record<string, unknown> } | undefined {
  const tool = nextTool(request, turn)
  if (tool) return { name: tool.name, args: argumentsFor(tool.parameters, turn.text) }
  if (request.options?.toolChoice === 'none' || turn.called.size > 0) return undefined
  const instruction = messages.find(({ role }) => role === 'system')
  const spoken = new Set(wordsOf(turn.text))
  return instruction && transferFor(textOf(instruction), toolNames, wordsOf, spoken)
}

/** The tool that the user's words fit best; then others, each once in a turn, if their whole names were said. */
function nextTool(request: GenerateRequest, turn: Turn) {
  const { tools = [], options } = request
  const choice = options?.toolChoice
  if (choice === 'none') return undefined
  if (typeof choice === 'object') {
    const names = 'name' in choice ? [choice.name] : choice.names
    const named = tools.find(tool => names.includes(tool.name))
    if (!named)
      throw new AgentError(
        'provider-rejected',
        `The demo model was asked to call ${names.join(' or ')}, which is not declared.`,
      )
    return named
  }
  const spoken = new Set(wordsOf(turn.text))
  const isNamed = (name: string) => wordsOf(name).every(word => spoken.has(word))
  const open = tools.filter(
    ({ name }) =>
      name !== TRANSFER_TOOL && !turn.called.has(name) && (turn.called.size === 0 || isNamed(name)),
  )
  const scored = open.map(tool => ({ tool, score: scoreOf(tool.name, tool.description, spoken) }))
  const best = scored.reduce<(typeof scored)[number] | undefined>(
    (top, next) => (next.score > (top?.score ?? 0) ? next : top),
    undefined,
  )
  return best?.tool ?? (choice === 'required' ? open[0] : undefined)
}

/** A word of the tool's name weighs more than one of its description. */
function scoreOf(name: string, description: string, spoken: ReadonlySet<string>): number {
  const inName = wordsOf(name).filter(word => spoken.has(word)).length
  const inDescription = new Set(wordsOf(description).filter(word => spoken.has(word))).size
  return inName > 0 || inDescription > 1 ? inName * 3 + inDescription : 0
}

/** Words of four letters and more, each also without a plural's s. */
function wordsOf(text: string): string[] {
  const words = text
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]{3,}/gu)
  return (words ?? []).filter(word => !COMMON.has(word)).map(word => word.replace(/(?<=\w{3})s$/, ''))
}

const COMMON: ReadonlySet<string> = new Set(
  'the and for with this that from into get set use tool tools agent you are what your can will please not'.split(
    ' ',
  ),
)

function answerText(turn: Turn, toolNames: readonly string[]): string {
  if (turn.results.length > 0) {
    const shown = turn.results.map(
      ({ name, result }) => `**${name}**\n\n\`\`\`json\n${shorten(jsonOf(result))}\n\`\`\``,
    )
    return `This is what the tools answered (I am a demo model, so I only pass it on):\n\n${shown.join('\n\n')}`
  }
  const tools =
    toolNames.length > 0 ? ` I can call these tools when you name them: ${toolNames.join(', ')}.` : ''
  return (
    `You said: "${shorten(turn.text)}". I am Lango's demo model: no network, no intelligence, a few rules.${tools} ` +
    'For real answers set a key, such as OPENAI_API_KEY, GEMINI_API_KEY or ANTHROPIC_API_KEY.'
  )
}

/** On one line where it fits, as a person would write it. */
function jsonOf(value: unknown): string {
  const line = JSON.stringify(value) ?? 'null'
  return line.length > 80 ? JSON.stringify(value, undefined, 2) : line
}

/** What the user said in a message. */
function saidBy(message: ProviderMessage): string {
  return message.role === 'user' && message.writtenBy !== 'program' ? textOf(message) : ''
}

function textOf(message: ProviderMessage): string {
  return message.parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
}

function shorten(text: string): string {
  return text.length > 600 ? `${text.slice(0, 600)}…` : text
}

function estimate(text: string): number {
  return Math.ceil(new TextEncoder().encode(text).length / 4)
}

/** Plausible arguments for a tool, from its schema and what the user said. */

type Schema = Readonly<Record<string, unknown>>

/** Fills the schema's required properties; when none is required, those that the words say something of. */
export function argumentsFor(schema: Schema, text: string): Record<string, unknown> {
  const properties = asSchema(schema.properties)
  const names = Object.keys(properties)
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  const isFree = required.length === 0
  const wanted = isFree ? names : names.filter(name => required.includes(name))
  const numbers = (text.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number)
  return Object.fromEntries(
    wanted
      .filter(name => !isFree || isSaid(name, asSchema(properties[name]), text, numbers))
      .map(name => [name, valueFor(name, asSchema(properties[name]), text, numbers)]),
  )
}

/** Whether the words hold anything for a property that may be left out. */
function isSaid(name: string, schema: Schema, text: string, numbers: readonly number[]): boolean {
  if (schema.default !== undefined || Array.isArray(schema.enum)) return true
  const type = typeOf(schema)
  if (type === 'integer' || type === 'number') return numbers.length > 0
  if (type !== 'string') return true
  const isKnown = FINDERS.some(([pattern]) => pattern.test(name))
  return !isKnown || found(name, text) !== undefined || QUOTED.test(text)
}

function valueFor(name: string, schema: Schema, text: string, numbers: number[]): unknown {
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (Array.isArray(schema.enum)) return chosen(schema.enum, text)
  switch (typeOf(schema)) {
    case 'integer':
      return Math.round(numbers.shift() ?? minimum(schema))
    case 'number':
      return numbers.shift() ?? minimum(schema)
    case 'boolean':
      return true
    case 'array':
      return [valueFor(name, asSchema(schema.items), text, numbers)]
    case 'object':
      return argumentsFor(schema, text)
    default:
      return stringFor(name, text)
  }
}

function chosen(options: readonly unknown[], text: string): unknown {
  const spoken = text.toLowerCase()
  return (
    options.find(option => typeof option === 'string' && spoken.includes(option.toLowerCase())) ?? options[0]
  )
}

function stringFor(name: string, text: string): string {
  return found(name, text) ?? QUOTED.exec(text)?.[1] ?? text.trim()
}

function found(name: string, text: string): string | undefined {
  if (ZONE_NAME.test(name)) return zoneIn(text)
  for (const [pattern, find] of FINDERS) {
    const match = pattern.test(name) ? find.exec(text) : null
    if (match) return (match[1] ?? match[0]).trim()
  }
  return undefined
}

/** A time zone that is named, or the one of a city that is: `New York` is `America/New_York`. */
function zoneIn(text: string): string | undefined {
  const spoken = text.toLowerCase().replaceAll(' ', '_')
  return Intl.supportedValuesOf('timeZone').find(zone => {
    const city = zone.slice(zone.lastIndexOf('/') + 1).toLowerCase()
    return new RegExp(`(^|[^a-z])${city}($|[^a-z])`).test(spoken)
  })
}

const QUOTED = /"([^"]+)"/
const ZONE_NAME = /time_?zone/i

// By what a property is called: what in the user's words could be meant.
const FINDERS: readonly (readonly [RegExp, RegExp])[] = [
  [/url|link|address/i, /https?:\/\/[^\s"'<>)]+/],
  [/path|file|folder|directory/i, /(?:\.{0,2}\/)?[\w.-]+(?:\/[\w.-]+)*\.\w+|\.{0,2}\/[\w./-]*/],
  [/email/i, /[\w.+-]+@[\w-]+\.[\w.]+/],
  [/expression|formula|calculation/i, /[-(\d][\d\s+\-*/().^%]*[\d)]/],
  [/city|location|place|where/i, /\b(?:in|at|for|near)\s+(\p{Lu}[\p{L}-]*(?:\s\p{Lu}[\p{L}-]*)*)/u],
  [/date|day/i, /\d{4}-\d{2}-\d{2}/],
  // Found by the list of zones.
  [ZONE_NAME, /^$/],
]

function typeOf(schema: Schema): string {
  const { type } = schema
  if (Array.isArray(type)) return String(type.find(one => one !== 'null') ?? 'string')
  if (typeof type === 'string') return type.toLowerCase()
  return schema.properties ? 'object' : 'string'
}

function minimum(schema: Schema): number {
  return typeof schema.minimum === 'number' ? schema.minimum : 1
}

function asSchema(value: unknown): Schema {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Schema) : {}
}

/** ADK describes other agents in the instruction; this parses the description, so that the demo can transfer, too. */

interface Transfer {
  name: typeof TRANSFER_TOOL
  args: { agentName: string }
}

/** The agent whose name or description shares the most words with what the user said. */
function transferFor(
  instruction: string,
  toolNames: readonly string[],
  wordsOf: (text: string) => string[],
  spoken: ReadonlySet<string>,
): Transfer | undefined {
  if (!toolNames.includes(TRANSFER_TOOL)) return undefined
  const own = /internal name is "([^"]+)"/.exec(instruction)?.[1]
  const agents = [...instruction.matchAll(/^Agent name: (.+)\nAgent description: (.*)$/gm)]
    .map(([, name = '', description = '']) => ({ name, description }))
    .filter(({ name }) => name !== own)
    .map(({ name, description }) => ({
      name,
      score: new Set(wordsOf(`${name} ${description}`).filter(word => spoken.has(word))).size,
    }))
    .sort((one, other) => other.score - one.score)
  const [best] = agents
  return best && best.score > 0 ? { name: TRANSFER_TOOL, args: { agentName: best.name } } : undefined
}
