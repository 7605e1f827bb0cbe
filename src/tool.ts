/**
 * A tool as its author writes it. `parameters` is a JSON schema, or anything that follows Standard Schema
 * (a Zod schema does); arguments are validated before `execute` is called.
 */
export interface Tool<Args = Record<string, unknown>> {
  readonly name: string
  readonly description: string
  readonly parameters: ToolParameters
  /** Any value; what is not a JSON object is wrapped. A thrown error is told to the model as a result. */
  execute(args: Args, context: ToolContext): unknown
  /** `read` changes nothing, `idempotent` may be repeated, `once` (the default) must not be. */
  readonly effect?: ToolEffect
  readonly needsApproval?: boolean | ((args: Args) => boolean | Promise<boolean>)
  /** More than 0; `Infinity` for no limit. Default 120,000. */
  readonly timeoutMs?: number
}

export type ToolEffect = 'read' | 'idempotent' | 'once'

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
  readonly sessionId: string
  readonly userId: string
  readonly agentName: string
  /** The session's state as the tool sees it; writes are saved with the tool's result, and ignored after its stop. */
  readonly state: {
    get(key: string): unknown
    set(key: string, value: unknown): void
  }
}

/** What a person says to a tool that asks first: yes this time, yes for the rest of the session, or no. */
export type ApprovalAnswer = 'once' | 'always' | 'no'

/** How asking ended: with an answer, or without one because nobody spoke in time or the run was stopped. */
export type ApprovalOutcome = ApprovalAnswer | 'timeout' | 'aborted'

/** Where the session's state lists the tools that were approved for good, by name. */
export const APPROVALS_STATE_KEY = 'lango:approvals'

export type ArgsOf<Parameters> = Parameters extends { readonly '~standard': { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : Record<string, unknown>
  : Record<string, unknown>

/** Describes a tool. The arguments of `execute` take their type from a Zod schema. */
export function defineTool<const Parameters extends ToolParameters>(
  tool: Omit<Tool<ArgsOf<Parameters>>, 'parameters'> & { readonly parameters: Parameters },
): Tool {
  // The runtime validates arguments against `parameters` before `execute` sees them, so the narrower type holds.
  return tool as unknown as Tool
}
