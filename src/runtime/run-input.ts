import { unknownKeyText } from '../base/suggest.js'
import { AgentError } from '../errors.js'
import type { RunInput } from '../run/run-host.js'

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
  return given.flatMap(([path, value]) => {
    if (path === 'appName') return value === appName ? [] : [{ path, message: otherApp(appName) }]
    if (!isKey(path)) return [{ path, message: unknownKeyText(path, KEYS) }]
    const [isRight, expected] = RULES[path]
    return isRight(value) ? [] : [{ path, message: `\`${path}\` must be ${expected}.` }]
  })
}

type Rule = readonly [isRight: (value: unknown) => boolean, expected: string]

const TEXT: Rule = [value => typeof value === 'string', 'a string']
const FUNCTION: Rule = [value => typeof value === 'function', 'a function']
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
  stateDelta: [isObject, 'an object'],
  onApproval: FUNCTION,
  whenBusy: [value => value === 'queue' || value === 'reject', '`queue` or `reject`'],
  signal: [value => value instanceof AbortSignal, 'an AbortSignal'],
  runId: [value => typeof value === 'string' && UUID.test(value), 'a UUID'],
  request: TEXT,
  onStored: FUNCTION,
}

const KEYS = Object.keys(RULES)

function isKey(key: string): key is keyof RunInput {
  return Object.hasOwn(RULES, key)
}

function otherApp(appName: string): string {
  return `\`appName\` is not the app of this runtime, which is "${appName}". Omit it, or set \`app\` in createRuntime.`
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
