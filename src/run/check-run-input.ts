/** The rules for the input of a run. */
import { DUE_TIME_RULE, readDueTime } from '../base/due-time.js'
import { isRecord } from '../base/is-record.js'
import { THINKING_LEVELS } from '../base/names.js'
import { unknownKeyText } from '../base/suggest.js'
import { isTraceContext } from '../base/trace-context.js'
import { AgentError } from '../errors.js'
import { BUDGET_RULE, isBudget } from '../session/usage.js'
import type { GenerationOfRun, RunInput } from './run-host.js'

/**
 * Refuses what a run cannot take, unknown keys included. Values are not shown: they may be prompts. The key of a
 * session may be spread into the input, so `appName` is taken if it is that of the runtime.
 */
export function checkRunInput(input: RunInput, appName: string): void {
  const problems = problemsOf(input, appName)
  if (problems.length === 0) return
  const text = problems.map(({ message }) => message).join(' ')
  throw new AgentError('invalid-argument', `The input of the run is not valid: ${text}`, {
    details: { problems },
  })
}

interface InputProblem {
  path: string
  message: string
}

function problemsOf(input: unknown, appName: string): InputProblem[] {
  if (input === undefined) return [{ path: '', message: 'It is missing. Pass an object such as { text }.' }]
  if (!isObject(input)) return [{ path: '', message: 'It must be an object such as { text }.' }]
  const given = Object.entries(input).filter(([, value]) => value !== undefined)
  const found = given.flatMap(([path, value]) => {
    if (path === 'appName') return value === appName ? [] : [{ path, message: otherApp(appName) }]
    if (!isKey(path)) return [{ path, message: unknownKeyText(path, KEYS) }]
    const [isRight, expected] = RULES[path]
    return isRight(value) ? [] : [{ path, message: `\`${path}\` must be ${expected}.` }]
  })
  const { at, whenBusy } = input as RunInput
  return at !== undefined && whenBusy === 'reject' ? [...found, REJECTED_LATER] : found
}

const REJECTED_LATER: InputProblem = {
  path: 'whenBusy',
  message:
    '`whenBusy` cannot be `reject` with `at`: a run that is due waits for its session. Omit one of them.',
}

type Rule = readonly [isRight: (value: unknown) => boolean, expected: string]

const TEXT: Rule = [value => typeof value === 'string', 'a string']
const FUNCTION: Rule = [value => typeof value === 'function', 'a function']
const GENERATION: ReadonlySet<string> = new Set<keyof GenerationOfRun>([
  'topP',
  'seed',
  'stopSequences',
  'presencePenalty',
  'frequencyPenalty',
  'responseMimeType',
  'responseJsonSchema',
])
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const RULES: Readonly<Record<keyof RunInput, Rule>> = {
  sessionId: TEXT,
  userId: TEXT,
  text: TEXT,
  parts: [
    value => Array.isArray(value) && value.every(part => isObject(part) && Object.keys(part).length > 0),
    'a list of parts such as { text } or { inlineData }',
  ],
  model: TEXT,
  thinking: [
    value => THINKING_LEVELS.some(level => level === value),
    `one of ${THINKING_LEVELS.map(level => `\`${level}\``).join(', ')}`,
  ],
  temperature: [value => isNumber(value) && value >= 0 && value <= 2, 'a number from 0 to 2'],
  maxOutputTokens: [value => Number.isInteger(value) && Number(value) >= 1, 'a whole number of at least 1'],
  outputSchema: [isObject, 'a Zod schema or a JSON schema'],
  fallback: [
    value => Array.isArray(value) && value.every(reference => typeof reference === 'string'),
    'a list of models such as ["openai/gpt-5.2"]',
  ],
  stateDelta: [isObject, 'an object'],
  onApproval: FUNCTION,
  whenBusy: [value => value === 'queue' || value === 'reject', '`queue` or `reject`'],
  at: [value => readDueTime(value) !== undefined, DUE_TIME_RULE],
  signal: [value => value instanceof AbortSignal, 'an AbortSignal'],
  runId: [value => typeof value === 'string' && UUID.test(value), 'a UUID'],
  request: TEXT,
  clientTools: [
    isClientTools,
    '{ tools } with a name for each tool, and `choice` and `parallel` where needed',
  ],
  generation: [
    value => isObject(value) && Object.keys(value).every(key => GENERATION.has(key)),
    `an object with some of: ${[...GENERATION].join(', ')}`,
  ],
  trace: [isTraceContext, '{ traceparent } as the W3C defines it, and `tracestate` where there is one'],
  note: [isObject, 'an object'],
  budget: [isBudget, BUDGET_RULE],
  onStored: FUNCTION,
}

function isClientTools(value: unknown): boolean {
  if (!isRecord(value) || !hasOnly(value, ['tools', 'choice', 'parallel'])) return false
  const { tools, choice = 'auto', parallel = true } = value
  const isChoice = isRecord(choice)
    ? hasOnly(choice, ['names']) && Array.isArray(choice.names) && choice.names.length > 0
    : ['auto', 'none', 'required'].includes(String(choice))
  return Array.isArray(tools) && tools.every(isClientTool) && isChoice && typeof parallel === 'boolean'
}

function isClientTool(value: unknown): boolean {
  if (!isRecord(value) || !hasOnly(value, ['name', 'description', 'parameters', 'strict'])) return false
  const { name, description = '', parameters = {}, strict = false } = value
  const isNamed = typeof name === 'string' && TOOL_NAME.test(name) && typeof description === 'string'
  return isNamed && isRecord(parameters) && typeof strict === 'boolean'
}

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/

function hasOnly(value: object, keys: readonly string[]): boolean {
  return Object.keys(value).every(key => keys.includes(key))
}

const KEYS = Object.keys(RULES)

function isKey(key: string): key is keyof RunInput {
  return Object.hasOwn(RULES, key)
}

function otherApp(appName: string): string {
  return `\`appName\` is not the app of this runtime, which is "${appName}". Omit it, or set \`app\` in createRuntime.`
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
