import { isRecord } from './base/is-record.js'
import { unknownKeyText } from './base/suggest.js'
import { AgentError, checkArgument } from './errors.js'

/**
 * A tool as its author writes it. `parameters` is a JSON schema, or anything that follows Standard Schema
 * (a Zod schema does); arguments are validated before `execute` is called.
 */
export interface Tool<Args = Record<string, unknown>> {
  readonly name: string
  readonly description: string
  readonly parameters: ToolParameters
  /** Any value; what is not a JSON object is wrapped. A thrown error becomes a result with `error`. */
  execute(args: Args, context: ToolContext): unknown
  /** `read` changes nothing, `idempotent` may be repeated, `once` (the default) must not be. */
  readonly effect?: ToolEffect
  /** What happens when the outcome of a call is unknown, because its process ended. Default by `effect`. */
  readonly onUnknown?: OnUnknown
  /**
   * Finds out whether a call took effect: its result if it did, `undefined` if it did not. Asked before `onUnknown`
   * counts. When it throws, the outcome stays unknown.
   */
  readonly verify?: (args: Args, context: VerifyContext) => unknown
  /** True if a person must approve a call. A text means yes, and is shown with the request as its reason. */
  readonly needsApproval?: boolean | ((args: Args) => boolean | string | Promise<boolean | string>)
  /** More than 0; `Infinity` for no limit. Default 120,000. */
  readonly timeoutMs?: number
}

export type ToolEffect = 'read' | 'idempotent' | 'once'

/**
 * What happens to a call that was started by a process that is gone. `retry` runs it again, with the same
 * `idempotencyKey`; `tell` lets the model read that the outcome is not known, and does not run a repeated call; `ask`
 * waits for a person; `fail` ends the run. Default: `tell` for `once`, otherwise `retry`.
 */
export type OnUnknown = 'retry' | 'tell' | 'ask' | 'fail'

/** A person's answer about a call whose outcome is unknown: it took effect; it did not, run it; leave it unknown. */
export type OutcomeAnswer = 'happened' | 'run' | 'leave'

/** The call took effect, and this is what it returned: for a node of a workflow whose output another node uses. */
export type ConfirmedOutcome = { readonly happened: true; readonly result: unknown }

/** A person's or a program's answer to what a run waits for. Another object is the response of the call itself. */
export type RunAnswer = ApprovalAnswer | OutcomeAnswer | ConfirmedOutcome | CallResponse

/** The result of a long-running tool of ADK's, or a confirmation with a payload: `{ confirmed, payload }`. */
export type CallResponse = Readonly<Record<string, unknown>>

export interface VerifyContext {
  readonly idempotencyKey: string
  readonly signal: AbortSignal
}

/** How a tool that was not made with `defineTool` is treated: by name, in `tools.effects`. */
export type EffectOfTool = ToolEffect | { readonly effect?: ToolEffect; readonly onUnknown?: OnUnknown }

/**
 * A tool that the caller of a run executes. A call of it makes the run wait; `runtime.answer` gives it the result, and
 * the run continues.
 */
export interface ClientTool {
  readonly name: string
  readonly description?: string | undefined
  /** Default: no parameters. */
  readonly parameters?: JsonSchema | undefined
  /** The caller gets no call whose arguments do not satisfy the schema: the model gets an error instead. */
  readonly strict?: boolean | undefined
}

export interface ClientTools {
  readonly tools: readonly ClientTool[]
  /** Whether one of them must be called first: any, or one of these. `none`: none may be called. Default `auto`. */
  readonly choice?: 'auto' | 'none' | 'required' | { readonly names: readonly string[] } | undefined
  /** Whether one answer may call several of them. Default true. */
  readonly parallel?: boolean | undefined
}

export type JsonSchema = Readonly<Record<string, unknown>>

/** A JSON schema, or a Standard Schema such as Zod's. */
export type ToolParameters = JsonSchema | StandardSchema

/** The part of the Standard Schema contract that Lango uses (https://standardschema.dev). */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[]
    }

export interface ToolContext {
  /** Aborted when the run is stopped or the tool's time is up. */
  readonly signal: AbortSignal
  readonly callId: string
  /**
   * The same for every attempt of one call, also when a model repeats a call whose outcome is unknown; different for
   * every other call of the session. Made for services that accept an idempotency key.
   */
  readonly idempotencyKey: string
  /** 1, or more when a call whose outcome is unknown runs again. */
  readonly attempt: number
  readonly sessionId: string
  readonly userId: string
  readonly agentName: string
  /** The session's state as the tool sees it; writes are saved with the tool's result, and ignored after the tool was stopped. */
  readonly state: {
    get(key: string): unknown
    set(key: string, value: unknown): void
  }
}

/** A person's answer to a request for approval: this call, all calls of the tool in this session, or none. */
export type ApprovalAnswer = 'once' | 'always' | 'no'

/** How a request for approval ended: with an answer, by a timeout, or because the run was stopped. */
export type ApprovalOutcome = ApprovalAnswer | 'timeout' | 'aborted'

/** The key of the session's state that lists the tools approved for the session, by name. */
export const APPROVALS_STATE_KEY = 'lango:approvals'

export type ArgsOf<Parameters> = Parameters extends { readonly '~standard': { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : Record<string, unknown>
  : Record<string, unknown>

/**
 * Describes a tool. The arguments of `execute` take their type from a Zod schema; without `parameters` the tool takes
 * none. Throws `invalid-config` for a wrong or unknown key.
 *
 * ```ts
 * import { defineTool } from 'lango'
 * import { z } from 'zod'
 *
 * export const weather = defineTool({
 *   name: 'weather',
 *   description: 'The current weather of a city.',
 *   parameters: z.object({ city: z.string() }),
 *   effect: 'read',
 *   execute: async ({ city }, { signal }) => {
 *     const response = await fetch(`https://weather.example/${encodeURIComponent(city)}`, { signal })
 *     return { city, report: await response.text() }
 *   },
 * })
 * ```
 */
export function defineTool<const Parameters extends ToolParameters>(
  given: Omit<Tool<ArgsOf<Parameters>>, 'parameters'> & { readonly parameters?: Parameters },
): Tool {
  checkArgument(isRecord(given), 'defineTool', 'needs an object with name, description and execute')
  const tool = given.parameters === undefined ? { ...given, parameters: NO_PARAMETERS } : given
  const problems = toolProblems(tool).map(({ key, expected }) => ({
    path: key,
    message: expected === undefined ? unknownKeyText(key, TOOL_KEYS) : `\`${key}\` ${expected}.`,
  }))
  if (problems.length > 0) {
    const name = typeof tool.name === 'string' ? ` "${tool.name}"` : ''
    const text = problems.map(({ message }) => message).join(' ')
    throw new AgentError('invalid-config', `The tool${name} is not valid: ${text}`, { details: { problems } })
  }
  // The runtime validates arguments against `parameters` before `execute` sees them, so the narrower type holds.
  return tool as unknown as Tool
}

/** A key that is wrong: its value should be as `expected` says, or there is no such key. */
export interface ToolProblem {
  key: string
  expected?: string
}

const isText = (value: unknown) => typeof value === 'string'
const EFFECTS: readonly unknown[] = ['read', 'idempotent', 'once'] satisfies ToolEffect[]
const UNKNOWN_POLICIES: readonly unknown[] = ['retry', 'tell', 'ask', 'fail'] satisfies OnUnknown[]

type Rule = readonly [isRight: (value: unknown) => boolean, expected: string]

const NO_PARAMETERS = { type: 'object', properties: {} }

const RULES: Readonly<Record<keyof Tool, Rule>> = {
  name: [
    value => isText(value) && /^[A-Za-z_][\w.:-]{0,127}$/.test(String(value)) && value !== '__proto__',
    'must be a name of letters, digits, underscores, dots or hyphens',
  ],
  description: [value => value === undefined || isText(value), 'must be a text'],
  parameters: [
    value => (typeof value === 'object' && value !== null) || typeof value === 'function',
    'must be a Zod schema or a JSON schema',
  ],
  execute: [value => typeof value === 'function', 'must be a function'],
  effect: [value => value === undefined || EFFECTS.includes(value), `must be one of: ${EFFECTS.join(', ')}`],
  onUnknown: [
    value => value === undefined || UNKNOWN_POLICIES.includes(value),
    `must be one of: ${UNKNOWN_POLICIES.join(', ')}`,
  ],
  verify: [value => value === undefined || typeof value === 'function', 'must be a function'],
  needsApproval: [
    value => value === undefined || typeof value === 'boolean' || typeof value === 'function',
    'must be true, false or a function',
  ],
  timeoutMs: [
    value => value === undefined || (typeof value === 'number' && value > 0),
    'must be a number of milliseconds greater than 0, or Infinity',
  ],
}

export const TOOL_KEYS: readonly string[] = Object.keys(RULES)

/** What is wrong with a tool. Keys set to `undefined` count as absent; an instance of a class may have more keys. */
export function toolProblems(tool: object): ToolProblem[] {
  const given = Object.getPrototypeOf(tool) === Object.prototype ? Object.keys(tool) : []
  const unknown = given.filter(key => !TOOL_KEYS.includes(key) && Reflect.get(tool, key) !== undefined)
  const wrong = Object.entries(RULES).filter(([key, [isRight]]) => !isRight(Reflect.get(tool, key)))
  return [...unknown.map(key => ({ key })), ...wrong.map(([key, [, expected]]) => ({ key, expected }))]
}
