/**
 * Checks data against a schema and reports all problems at once, in sentences. Both configuration files and the
 * options of `createRuntime` are checked here.
 */

import type { z } from 'zod'
import { DEFAULT_AGENT_NAME } from '../base/names.js'
import { HIDDEN, isPlain, isSecretPath, redactText } from '../base/redact.js'
import { suggest } from '../base/suggest.js'
import { AgentError } from '../errors.js'
import { TOOL_KEYS } from '../tool.js'
import { knownKeys, type Misfit, placesOf, prepareData } from './schema-walk.js'

/** One problem. */
export interface ConfigProblem {
  /** The key, as in `agent.subAgents[0].name`; empty for the configuration as a whole. */
  path: string
  message: string
}

/** Notes on keys that belong elsewhere, by name: the sentence that follows "… is not a known key." */
export type KeyNotes = ReadonlyMap<string, string>

export interface ReadData<Output> {
  problems: ConfigProblem[]
  /** The input without keys set to `undefined`; values made in code are not copied. */
  given: unknown
  /** With defaults filled in; absent when there are problems. */
  data?: Output
}

/** Checks `input`. `notes` explain keys of the outermost object that are known elsewhere. */
export function readData<Output>(
  schema: z.ZodType<Output>,
  input: unknown,
  notes: KeyNotes = new Map(),
): ReadData<Output> {
  const { value: given, misfits } = prepareData(schema, input)
  const circle = misfits.find(({ kind }) => kind === 'circle')
  // A schema would follow a cycle without end.
  if (circle) return { given, problems: [explainMisfit(circle, given)] }
  const structural = misfits.map(misfit => explainMisfit(misfit, given))
  const result = schema.safeParse(given)
  const issues = result.success
    ? []
    : result.error.issues.flatMap(issue => explain(issue, { schema, given, notes }))
  const problems = [
    ...structural,
    ...issues.filter(({ path }) => !structural.some(above => isWithinPath(path, above.path))),
  ]
  return problems.length > 0 || !result.success ? { given, problems } : { given, problems, data: result.data }
}

function isWithinPath(path: string, above: string): boolean {
  return above === '' || path === above || path.startsWith(`${above}.`) || path.startsWith(`${above}[`)
}

interface Reading {
  schema: z.core.$ZodType
  given: unknown
  notes: KeyNotes
}

function explainMisfit({ kind, path: steps, circle = [] }: Misfit, given: unknown): ConfigProblem {
  const path = pathText(steps)
  const value = valueAt(given, steps)
  if (kind === 'circle') {
    const names = circle
      .filter(isPlain)
      .slice(1)
      .map(({ name = DEFAULT_AGENT_NAME }) => String(name))
    return {
      path,
      message: `The agents form a circle: ${names.join(' → ')}. An agent cannot be below itself.`,
    }
  }
  if (kind === 'name') {
    return { path, message: `The name in \`${path}\` (${valueText(value, steps)}) must be another name.` }
  }
  const advice =
    path === 'agent' && isObject(value) && 'runAsync' in value ? ' Pass an ADK agent as `rootAgent`.' : ''
  const subject = path === '' ? 'It' : `\`${path}\``
  return { path, message: `${subject} is ${valueText(value, steps)}, but must be a plain object.${advice}` }
}

/** A path as text, as in `agent.subAgents[0].name`. */
export function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step, index) => {
    if (typeof step === 'number') return `${text}[${step}]`
    // Tokens are the keys of their object.
    const name = path[index - 1] === 'tokens' ? HIDDEN : redactText(String(step))
    if (!/^[A-Za-z_$][\w$-]*$/.test(name)) return `${text}[${JSON.stringify(name)}]`
    return text === '' ? name : `${text}.${name}`
  }, '')
}

function explain(issue: z.core.$ZodIssue, reading: Reading): ConfigProblem[] {
  const { given } = reading
  if (issue.code === 'unrecognized_keys') return issue.keys.map(key => unknownKey(issue, key, reading))
  if (issue.code === 'invalid_union') {
    const branch = nearestBranch(issue)
    if (branch)
      return branch.flatMap(inner => explain({ ...inner, path: [...issue.path, ...inner.path] }, reading))
  }
  if (issue.code === 'invalid_key') return [wrongName(issue, given)]
  return [wrongValue(issue, given)]
}

function unknownKey(issue: z.core.$ZodIssueUnrecognizedKeys, key: string, reading: Reading): ConfigProblem {
  const { path } = issue
  const { schema, given, notes } = reading
  const full = [...path, key]
  const known = knownKeys(schema, path) ?? TOOL_KEYS
  const near = suggest(key, known)
  const elsewhere = near === undefined ? placesOf(schema, key)[0] : undefined
  const meant = near === undefined ? elsewhere : pathText([...path, near])
  const note = notes.get(pathText(full)) ?? ADK_NOTES.get(pathText(full))
  const fix = note ?? (meant ? `Did you mean \`${meant}\`?` : `Known keys here: ${known.join(', ')}.`)
  const message = `\`${pathText(full)}\` (${valueText(valueAt(given, full), full)}) is not a known key. ${fix}`
  return { path: pathText(full), message }
}

/** Settings that other releases of ADK have. */
const ADK_NOTES = new Map(
  ['eventsCompactionConfig', 'contextCacheConfig', 'contextCompactionConfig'].map(key => [
    `adk.${key}`,
    key === 'contextCacheConfig'
      ? 'This release of ADK has no such setting. Providers cache prompts by themselves.'
      : 'This release of ADK has no such setting. It compacts by `contextCompactors`.',
  ]),
)

/** The branch of a union that the value was meant for: the one that accepts its type. */
function nearestBranch(issue: z.core.$ZodIssueInvalidUnion): readonly z.core.$ZodIssue[] | undefined {
  return issue.errors.find(branch => branch.length > 0 && branch.every(isWithin))
}

function isWithin(issue: z.core.$ZodIssue): boolean {
  return issue.path.length > 0 || issue.code === 'unrecognized_keys'
}

function wrongName(issue: z.core.$ZodIssueInvalidKey, input: unknown): ConfigProblem {
  const path = pathText(issue.path)
  const expected = issue.issues[0]?.message ?? 'must be another name'
  const value = valueText(valueAt(input, issue.path), issue.path)
  return { path, message: `The name in \`${path}\` (${value}) ${expected}.` }
}

function wrongValue(issue: z.core.$ZodIssue, input: unknown): ConfigProblem {
  const path = pathText(issue.path)
  const value = valueAt(input, issue.path)
  if (path === '') return { path, message: `It is ${valueText(value, [])}, but ${issue.message}.` }
  if (value === undefined) {
    return { path, message: `\`${path}\` is missing: it ${issue.message}.${hint(issue, value)}` }
  }
  const message = `\`${path}\` is ${valueText(value, issue.path)}, but ${issue.message}.${hint(issue, value)}`
  return { path, message }
}

function hint(issue: z.core.$ZodIssue, value: unknown): string {
  if (issue.code !== 'invalid_value' || typeof value !== 'string') return ''
  const near = suggest(value, issue.values.map(String))
  return near === undefined ? '' : ` Did you mean "${near}"?`
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input
  for (const step of path) {
    if (!isObject(value) || !Object.hasOwn(value, step)) return undefined
    value = Reflect.get(value, step)
  }
  return value
}

const SHOWN_CHARACTERS = 60

/** A short description of a value; never of a secret. */
function valueText(value: unknown, path: readonly PropertyKey[]): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object')
    return isPlain(value) ? 'an object' : `an object of class ${className(value)}`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'string' && isSecretPath(path)) return 'a secret (not shown)'
  if (typeof value !== 'string') return String(value)
  const text = redactText(value)
  return JSON.stringify(text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text)
}

function className(value: object): string {
  return value.constructor?.name || 'without a name'
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** The error that lists the problems of a configuration. */
export function invalidConfig(where: string, problems: readonly ConfigProblem[]): AgentError {
  const [first] = problems
  const text =
    problems.length === 1 && first
      ? `${where} is not valid: ${first.message}`
      : `${where} is not valid. ${problems.length} problems:\n${problems.map(({ message }) => `- ${message}`).join('\n')}`
  return new AgentError('invalid-config', text, { details: { problems } })
}
