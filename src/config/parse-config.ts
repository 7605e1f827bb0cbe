/** Checks a configuration and says what is wrong with it, all at once, in sentences. */
import type { z } from 'zod'
import { AgentError } from '../errors.js'
import { configSchema, type LangoConfig, PROVIDER_TYPE_NAMES } from './config.js'
import { HIDDEN, isPlain, isSecretPath, redactText } from './redact.js'
import { knownKeys, placesOf } from './schema-paths.js'
import { suggest } from './suggest.js'

/** One thing that is wrong. */
export interface ConfigProblem {
  /** The key, as in `agent.subAgents[0].name`; empty for the configuration as a whole. */
  path: string
  message: string
}

export interface ParseOptions {
  /** What is checked, such as a file's name. */
  where?: string | undefined
  /** Says where the value of a key comes from, when that is not the file. */
  originOf?: ((path: string) => string | undefined) | undefined
}

/** Checks a configuration and fills in the defaults. */
export function parseConfig(input: unknown, options: ParseOptions = {}): LangoConfig {
  const result = configSchema.safeParse(input)
  const problems = result.success
    ? [...furtherProblems(result.data), ...lostNames(input)]
    : result.error.issues.flatMap(i => explain(i, input))
  if (!result.success || problems.length > 0) {
    throw invalidConfig(
      options.where ?? 'The configuration',
      problems.map(problem => withOrigin(problem, options)),
    )
  }
  return withProviderTypes(result.data)
}

function withOrigin(problem: ConfigProblem, { originOf }: ParseOptions): ConfigProblem {
  const origin = originOf?.(problem.path)
  return origin === undefined
    ? problem
    : { ...problem, message: `${problem.message} It comes from ${origin}.` }
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

/** A path as a person would write it. */
export function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step, index) => {
    if (typeof step === 'number') return `${text}[${step}]`
    // Tokens are the keys of their object.
    const name = path[index - 1] === 'tokens' ? HIDDEN : redactText(String(step))
    if (!/^[A-Za-z_$][\w$-]*$/.test(name)) return `${text}[${JSON.stringify(name)}]`
    return text === '' ? name : `${text}.${name}`
  }, '')
}

function explain(issue: z.core.$ZodIssue, input: unknown): ConfigProblem[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map(key => unknownKey([...issue.path], key, input))
  }
  if (issue.code === 'invalid_union') {
    const branch = nearestBranch(issue)
    if (branch)
      return branch.flatMap(inner => explain({ ...inner, path: [...issue.path, ...inner.path] }, input))
  }
  if (issue.code === 'invalid_key') return [wrongName(issue, input)]
  return [wrongValue(issue, input)]
}

function unknownKey(path: readonly PropertyKey[], key: string, input: unknown): ConfigProblem {
  const full = [...path, key]
  const known = knownKeys(configSchema, path) ?? []
  const near = suggest(key, known)
  const elsewhere = near === undefined ? placesOf(configSchema, key)[0] : undefined
  const meant = near === undefined ? elsewhere : pathText([...path, near])
  const fix = meant ? `Did you mean \`${meant}\`?` : `Known keys here: ${known.join(', ')}.`
  const message = `\`${pathText(full)}\` (${valueText(valueAt(input, full), full)}) is not a known key. ${fix}`
  return { path: pathText(full), message }
}

/** The branch of a choice that the value was meant for: the one that took it for what it is. */
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
    if (typeof value !== 'object' || value === null) return undefined
    value = Reflect.get(value, step)
  }
  return value
}

const SHOWN_CHARACTERS = 60

/** A value in few words, and never a secret's. */
function valueText(value: unknown, path: readonly PropertyKey[]): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'string' && isSecretPath(path)) return 'a secret that is not shown'
  if (typeof value !== 'string') return String(value)
  const text = redactText(value)
  return JSON.stringify(text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text)
}

/** Zod leaves out `__proto__` where any name may stand; it is reported instead. Objects made in code are left alone. */
function lostNames(value: unknown, path: readonly PropertyKey[] = []): ConfigProblem[] {
  if (!isPlain(value) || Object.values(value).some(item => typeof item === 'function')) return []
  return Object.entries(value).flatMap(([key, item]) => {
    const place = pathText([...path, key])
    if (key !== '__proto__') return lostNames(item, [...path, key])
    return [{ path: place, message: `\`${place}\` cannot be a name. Choose another one.` }]
  })
}

/** Rules that speak of names, or of several places at once. */
function furtherProblems(config: LangoConfig): ConfigProblem[] {
  return [...untypedProviders(config), ...doubleNames(config)]
}

function untypedProviders({ providers }: LangoConfig): ConfigProblem[] {
  return Object.entries(providers).flatMap(([name, provider]) => {
    if ('generate' in provider || ('type' in provider && provider.type !== undefined)) return []
    if (PROVIDER_TYPE_NAMES.some(type => type === name && type !== 'openai-compatible')) return []
    const path = pathText(['providers', name, 'type'])
    const types = PROVIDER_TYPE_NAMES.join(', ')
    const message = `\`${path}\` is missing: it must be one of: ${types}. For a known server write type: openai-compatible and preset: ${name}.`
    return [{ path, message }]
  })
}

/** A provider whose name is a type need not repeat it. */
function withProviderTypes(config: LangoConfig): LangoConfig {
  const providers = Object.entries(config.providers).map(([name, provider]) => {
    if ('generate' in provider || ('type' in provider && provider.type !== undefined)) return [name, provider]
    return [name, { ...provider, type: name }]
  })
  return { ...config, providers: Object.fromEntries(providers) as LangoConfig['providers'] }
}

interface NamedAgent {
  name: string
  subAgents?: readonly NamedAgent[] | undefined
}

function doubleNames({ agent }: LangoConfig): ConfigProblem[] {
  const seen = new Map<string, string>()
  const problems: ConfigProblem[] = []
  const visit = (definition: NamedAgent, path: readonly PropertyKey[]): void => {
    const place = pathText([...path, 'name'])
    const first = seen.get(definition.name)
    if (first !== undefined) {
      const message = `\`${place}\` is "${definition.name}", but must be another name: \`${first}\` has it already.`
      problems.push({ path: place, message })
    }
    seen.set(definition.name, first ?? place)
    for (const [index, child] of (definition.subAgents ?? []).entries()) {
      visit(child, [...path, 'subAgents', index])
    }
  }
  if (agent) visit(agent, ['agent'])
  return problems
}
