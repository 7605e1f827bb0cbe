/**
 * Tools as the ledger of a run sees them. Each tool of an agent tree is adopted once: a call that is made inside a run
 * is recorded before it is executed, and its result before ADK gets it. Outside a run nothing changes.
 *
 * ADK's own tools get a wrapper of `runAsync`. It is installed on the instance, because some of them are shared by the
 * whole process, and finds the run of each call by itself.
 */

import { createHash, randomUUID } from 'node:crypto'
import { isRecord } from '../../base/is-record.js'
import { toJsonData } from '../../base/json.js'
import { withoutBinaries } from '../../base/mcp-result.js'
import { isAdkTool } from '../../base/names.js'
import { stableJson } from '../../base/stable-json.js'
import { AgentError, messageOf } from '../../errors.js'
import {
  type BegunCall,
  type CallBegin,
  type CallLedger,
  callsByContext,
  type ExecuteCall,
  type LedgerTool,
  type RecordedCall,
  type RecordedEnd,
} from '../../session/tool-calls.js'
import { markToolCallbacks } from '../agent-failures.js'
import {
  type BaseAgent,
  type BaseNode,
  type BaseTool,
  type BaseToolset,
  type Context,
  type FunctionDeclaration,
  FunctionTool,
  isAgentTool,
  isBaseTool,
  isBaseToolset,
  isLlmAgent,
  type LlmAgent,
  type NodeContext,
  type RunAsyncToolRequest,
} from '../sdk.js'
import { innerOf, isNodeTool, nodesOf, toolsOf } from './agent-tree.js'
import { callerOf, findCallEvent, isAwaited } from './tool-approval.js'

/** The ledger of the run that the current code belongs to. */
export type LedgerOf = () => CallLedger | undefined

/** A tool that records its calls itself. */
interface RecordingTool extends BaseTool {
  readonly ledgerTool: LedgerTool
  useLedger(ledgerOf: LedgerOf, execute: ExecuteCall): void
}

/** The adopted tools of an agent tree. */
export interface AdoptedTools {
  /** Adopts a tool that was not part of the tree. */
  adopt(tool: BaseTool): void
  /** Adopts the tools of an agent or a node that was not part of the tree. */
  adoptTree(root: object): void
  /** A tool of an agent by its name, as far as it is known. */
  find(agentName: string, tool: string): LedgerTool
}

/** Adopts every tool of a tree of agents, those of nested agents, workflows and toolsets included. */
export function adoptTools(
  root: object,
  ledgerOf: LedgerOf,
  execute: ExecuteCall = (_call, work) => work(),
): AdoptedTools {
  const tools = new Map<string, LlmAgent['tools']>()
  const adopt = (tool: BaseTool) => adoptTool(tool, ledgerOf, execute)
  const adoptTree = (tree: object): void => {
    for (const node of nodesOf(tree)) {
      if (isLlmAgent(node)) {
        tools.set(node.name, node.tools)
        markToolCallbacks(node)
      }
      for (const tool of toolsOf(node)) {
        if (isBaseToolset(tool)) adoptToolset(tool, adopt)
        else if (isBaseTool(tool)) adopt(tool)
      }
    }
  }
  adoptTree(root)
  return {
    adopt,
    adoptTree,
    find: (agentName, name) => {
      const known = (tools.get(agentName) ?? []).flatMap((tool): (BaseTool | BaseNode)[] =>
        isBaseToolset(tool) ? [...(offered.get(tool) ?? [])] : [tool],
      )
      const tool = known.find(each => each.name === name)
      return tool ? ledgerToolOf(tool) : {}
    },
  }
}

/** The names of ADK's function tools in a tree: their effect is `once`, because nothing says what they change. */
export function toolsWithoutEffect(root: object): string[] {
  const names = nodesOf(root)
    .flatMap(toolsOf)
    .filter(tool => tool instanceof FunctionTool && !hasPolicy(tool) && !isAdkTool(tool.name))
    .map(tool => (tool as FunctionTool).name)
  return [...new Set(names)].sort()
}

/** What each toolset has offered last. */
const offered = new WeakMap<BaseToolset, readonly BaseTool[]>()
const adopted = new WeakSet<object>()

function adoptToolset(toolset: BaseToolset, adopt: (tool: BaseTool) => void): void {
  if (adopted.has(toolset)) return
  adopted.add(toolset)
  const getTools = toolset.getTools.bind(toolset)
  toolset.getTools = async context => {
    const tools = await getTools(context)
    for (const tool of tools) adopt(tool)
    offered.set(toolset, tools)
    return tools
  }
}

function adoptTool(tool: BaseTool, ledgerOf: LedgerOf, execute: ExecuteCall): void {
  // A node that a tool runs works in the session of the run: a resumed run drives it again, and its own record answers.
  if (adopted.has(tool) || isAdkTool(tool.name) || isNodeTool(tool)) return
  adopted.add(tool)
  if (isRecording(tool)) tool.useLedger(ledgerOf, execute)
  else wrap(tool, ledgerOf, execute)
}

function isRecording(tool: BaseTool): tool is RecordingTool {
  return 'useLedger' in tool && hasPolicy(tool)
}

/** A tool that says itself how its calls are treated. */
function hasPolicy(tool: BaseTool): tool is BaseTool & Pick<RecordingTool, 'ledgerTool'> {
  return 'ledgerTool' in tool
}

function ledgerToolOf(tool: BaseTool | BaseNode): LedgerTool {
  if (!isBaseTool(tool) || innerOf(tool) !== undefined) return { isContainer: true }
  if (hasPolicy(tool)) return tool.ledgerTool
  const { readOnlyHint, idempotentHint } = mcpHints(tool)
  return { effect: readOnlyHint ? 'read' : idempotentHint ? 'idempotent' : 'once' }
}

function isMcpTool(tool: BaseTool): boolean {
  return isRecord(Reflect.get(tool, 'mcpTool'))
}

/** ADK keeps what an MCP server says of a tool in a field that it declares private. */
function mcpHints(tool: BaseTool): { readOnlyHint?: unknown; idempotentHint?: unknown } {
  const described: unknown = Reflect.get(tool, 'mcpTool')
  const hints: unknown = isRecord(described) ? described.annotations : undefined
  return isRecord(hints) ? hints : {}
}

function wrap(tool: BaseTool, ledgerOf: LedgerOf, execute: ExecuteCall): void {
  const runAsync = tool.runAsync.bind(tool)
  const own = ledgerToolOf(tool)
  if (tool instanceof FunctionTool) keepSchema(tool)
  if (isAgentTool(tool)) wrapAgent(innerOf(tool) as BaseAgent, ledgerOf)
  tool.runAsync = async request => {
    const ledger = ledgerOf()
    if (!ledger) return runAsync(request)
    const { args, toolContext } = request
    const callId = toolContext.functionCallId ?? ''
    const id = ledgerId(toolContext, callId)
    const recorded = recordedEnd(ledger, id, toolContext)
    if (recorded) return recordedResult(recorded, toolContext)
    if (await asksFirst(tool, request)) return runAsync(request)
    const signal = toolContext.abortSignal ?? new AbortController().signal
    const author = callerOf(toolContext)
    const begun = await beginCall(
      ledger,
      { id, callId, tool: tool.name, args, author, own, signal },
      toolContext,
    )
    if ('answer' in begun) return begun.answer
    callsByContext.set(toolContext, begun)
    try {
      const work = () => runAsync(request)
      const given = await execute(
        { callId, tool: tool.name, args, signal, description: tool.description },
        () => ledger.inside(id, work, own.isContainer ? asResponse : undefined),
      )
      const result = isMcpTool(tool) ? withoutBinaries(given) : given
      const isLater = tool.isLongRunning && (result === undefined || result === null)
      await begun.end('done', isLater ? undefined : asResponse(result), requestedActions(toolContext))
      return result
    } catch (error) {
      const actions = requestedActions(toolContext)
      await begun.end(signal.aborted ? 'unknown' : 'failed', { error: messageOf(error) }, actions)
      throw error
    }
  }
}

/**
 * ADK converts the Zod schema of a tool for every request, which takes about 40 µs. The schema of a tool stays the same,
 * so it is converted once. Each request gets a copy: plugins may change what is sent.
 */
function keepSchema(tool: FunctionTool): void {
  if (tool._getDeclaration !== FunctionTool.prototype._getDeclaration) return
  let kept: { of: unknown; parameters: unknown } | undefined
  tool._getDeclaration = () => {
    const of: unknown = Reflect.get(tool, 'parameters')
    if (kept && kept.of === of) {
      const parameters = toJsonData(kept.parameters) as NonNullable<FunctionDeclaration['parameters']>
      return { name: tool.name, description: tool.description, parameters }
    }
    const declaration = FunctionTool.prototype._getDeclaration.call(tool)
    // A schema that is not a Zod schema is handed on as it is, and may be changed by its owner.
    if (declaration.parameters !== of) kept = { of, parameters: toJsonData(declaration.parameters) }
    return declaration
  }
}

/** The runner of an agent inside a tool has no plugins; its run needs some to record what the agent does. */
function wrapAgent(agent: BaseAgent, ledgerOf: LedgerOf): void {
  if (adopted.has(agent)) return
  adopted.add(agent)
  const runAsync = agent.runAsync.bind(agent)
  agent.runAsync = context => {
    ledgerOf()?.enterAgent(context)
    return runAsync(context)
  }
}

/** What the tool has requested besides its result, as far as there is anything. */
function requestedActions({ actions }: Context): Record<string, unknown> | undefined {
  const requested = Object.entries(actions ?? {}).filter(
    ([, value]) => value !== undefined && !(isRecord(value) && Object.keys(value).length === 0),
  )
  return requested.length > 0
    ? (toJsonData(Object.fromEntries(requested)) as Record<string, unknown>)
    : undefined
}

/** What is recorded of a call. One that has requested a confirmation is executed again with the answer. */
function recordedEnd(ledger: CallLedger, id: string, context: Context): RecordedEnd | undefined {
  const recorded = ledger.recorded(id)
  const requested = recorded?.actions?.requestedToolConfirmations
  const isRequest = isRecord(requested) && Object.hasOwn(requested, context.functionCallId ?? '')
  return context.toolConfirmation && isRequest ? ledger.recorded(id) : recorded
}

/** What a call of an earlier attempt of the run returned; what it requested is requested again. */
function recordedResult({ answer, actions = {}, ...end }: RecordedEnd, toolContext: Context): unknown {
  const { stateDelta, ...others } = actions
  if (isRecord(stateDelta)) toolContext.state.update(stateDelta)
  Object.assign(toolContext.actions, others)
  if (end.isLater) return undefined
  if (end.isFailure && typeof answer.error === 'string') throw new AgentError('internal', answer.error)
  return answer
}

/**
 * The call that a tool of ADK's own, or a function in a workflow, is executed for: its idempotency key and its attempt.
 * `undefined` outside a run of Lango's.
 *
 * ```ts
 * import { FunctionTool } from '@google/adk'
 * import { callOf } from 'lango/adk'
 * import { z } from 'zod'
 *
 * export const pay = new FunctionTool({
 *   name: 'pay',
 *   description: 'Pays an invoice.',
 *   parameters: z.object({ invoice: z.string() }),
 *   execute: async ({ invoice }, context) => {
 *     const key = context && callOf(context)?.idempotencyKey
 *     const headers = { 'idempotency-key': key ?? invoice }
 *     const response = await fetch('https://bank.example/pay', { method: 'POST', headers, body: invoice })
 *     return { status: response.status }
 *   },
 * })
 * ```
 */
export function callOf(context: Context | NodeContext): RecordedCall | undefined {
  const call = callsByContext.get(context)
  return call && { idempotencyKey: call.idempotencyKey, attempt: call.attempt }
}

/** Whether the tool will ask a person for confirmation, or report a refusal, instead of running. */
async function asksFirst(tool: BaseTool, { args, toolContext }: RunAsyncToolRequest): Promise<boolean> {
  if (toolContext.toolConfirmation?.confirmed) return false
  try {
    return await tool.checkRequireConfirmation(args, toolContext)
  } catch {
    // Wrong arguments, for example: running the tool reports them.
    return false
  }
}

/** As ADK wraps a result for the model. */
function asResponse(result: unknown): unknown {
  if (Array.isArray(result)) return toJsonData({ results: result })
  return toJsonData(typeof result === 'object' && result !== null ? result : { result: result ?? null })
}

/** Begins a call in the ledger of its run. Without one, the key is made of the call alone. */
export async function beginCall(
  ledger: CallLedger | undefined,
  call: Omit<CallBegin, 'isAwaited'>,
  context: Context,
): Promise<BegunCall | { readonly answer: Record<string, unknown> }> {
  const begun = await ledger?.begin({ ...call, isAwaited: isAwaited(context) })
  return begun ?? unrecorded(call, context)
}

/** A call as the ledger names it. */
export function ledgerId(context: Context, callId: string): string {
  const message = findCallEvent(context, callId)?.id
  if (message !== undefined) return `${message}/${callId}`
  // A node of a workflow calls its tool without a message.
  const { invocationId = randomUUID(), branch = '' } = context.invocationContext ?? {}
  return `${invocationId}:${branch}/${callId}`
}

function unrecorded(
  { tool, args, callId }: Pick<CallBegin, 'tool' | 'args' | 'callId'>,
  context: Context,
): BegunCall {
  const { userId, sessionId } = context
  return {
    idempotencyKey: idempotencyKey([userId, sessionId, tool, args, callId]),
    attempt: 1,
    endsWith: () => {},
    end: async () => {},
  }
}

function idempotencyKey(facts: readonly unknown[]): string {
  return createHash('sha256')
    .update(stableJson(toJsonData(facts)))
    .digest('hex')
    .slice(0, 32)
}
