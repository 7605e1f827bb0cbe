/**
 * The nodes of workflows in a run. Code of the user's is recorded in the ledger like a call of a tool: an execution that
 * has ended gives its recorded events again, and one that was cut off has an unknown outcome. No model can decide what to
 * do then, so a person is asked, unless `tools.effects` says otherwise for the name of the node.
 *
 * A function that runs other nodes is driven again when the run is resumed, as an agent is: those nodes have records.
 */
import { ADK_ABORT } from '../adk/adk-quirks.js'
import type { Event } from '../adk/sdk.js'
import { AgentError } from '../errors.js'
import type {
  BegunNode,
  NodeEnd,
  NodeExecution,
  NodeJournal,
  ReplayedNode,
} from '../session/session-journal.js'
import type { BegunCall } from '../session/tool-calls.js'
import type { ResumedRun } from './resumed-run.js'
import { nodeScope, type RunJournal } from './run-journal.js'
import type { ToolLedger } from './tool-ledger.js'

interface NodeRunsParts {
  ledger: ToolLedger
  journal: RunJournal
  resumed: ResumedRun | undefined
}

/** The nodes of one round of a run. */
export class NodeRuns implements NodeJournal<Event> {
  readonly #parts: NodeRunsParts
  /** How often each node was executed. */
  readonly #executions = new Map<string, number>()

  constructor(parts: NodeRunsParts) {
    this.#parts = parts
  }

  inside<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
    return nodeScope.run(path, work)
  }

  made(event: Event, path: string): void {
    this.#parts.journal.made(event, path)
  }

  async begin(execution: NodeExecution): Promise<BegunNode | ReplayedNode<Event> | undefined> {
    const { ledger, resumed } = this.#parts
    const { replay } = resumed ?? {}
    const { name, path, branch, input, signal, output } = execution
    const { id, callId } = this.#idOf(execution)
    const isBelow = (other: string) => other.startsWith(`${path}.`)
    const runsNodes = replay?.hasNode(isBelow) || resumed?.calls.rows.some(row => isBelow(row.callId))
    const recorded = ledger.recorded(id)
    if (recorded && runsNodes) return undefined
    if (recorded && 'confirmed' in recorded.answer) return confirmed(recorded.answer)
    if (recorded) {
      // Written by this file.
      const end = recorded.answer as unknown as NodeEnd
      if (end.error !== undefined) replay?.failed()
      return { replayed: { events: replay?.eventsOf({ branch, node: path }, end.events) ?? [], end } }
    }
    if (!runsNodes) await replay?.untilLive(`node "${name}" begins`, { branch, node: path })
    const own = { effect: 'once', onUnknown: runsNodes ? 'retry' : 'ask' } as const
    const facts = { id, callId, tool: name, args: { input }, author: name }
    const call = { ...facts, own, signal, isAwaited: true, output }
    const begun = await nodeScope.run('', () => ledger.begin(call))
    if (begun && 'answer' in begun) return confirmed(begun.answer)
    return begun && begunNode(begun)
  }

  /** The execution as the ledger names it: the same in every attempt of the run. */
  #idOf({ path, branch, invocationId }: NodeExecution): { id: string; callId: string } {
    const place = `${invocationId}:${branch}`
    const number = (this.#executions.get(`${place}/${path}`) ?? 0) + 1
    this.#executions.set(`${place}/${path}`, number)
    const callId = `${path}#${number}`
    return { id: `${place}/${callId}`, callId }
  }
}

function begunNode({ idempotencyKey, attempt, endsWith, end }: BegunCall): BegunNode {
  return { idempotencyKey, attempt, endsWith, end: (status, result) => end(status, result) }
}

/** A node that is not executed: a person has confirmed that it took effect, or it is not known. */
function confirmed(answer: Record<string, unknown>): ReplayedNode<Event> {
  if ('confirmed' in answer) return { confirmed: answer.confirmed }
  const error = new AgentError('tool-outcome-unknown', String(answer.error))
  throw Object.assign(error, { name: ADK_ABORT })
}
