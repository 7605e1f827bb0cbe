import { TRANSFER_TOOL } from './is-delegation-event.js'

/**
 * What the model is told when it names an agent that does not exist. The words are the specification's.
 *
 * @spec RunAndCollect hallucination retry
 */
export function agentNameCorrection(name: string, validNames: readonly string[]): string {
  return (
    `[System: Agent "${name}" does not exist. Valid agents: ${validNames.join(', ')}. ` +
    'Please retry using one of the valid agent names listed above.]'
  )
}

/** An agent as far as its place in the tree goes. */
export interface NamedAgent {
  readonly name: string
  readonly subAgents?: readonly NamedAgent[] | undefined
}

/** The names of all agents below this one, depth first. */
export function subAgentNames(agent: NamedAgent): string[] {
  return (agent.subAgents ?? []).flatMap(child => [child.name, ...subAgentNames(child)])
}

/** The little of an event that a transfer is known by. */
interface TransferEvent {
  partial?: boolean | undefined
  content?:
    | {
        parts?:
          | readonly { functionCall?: { name?: string; args?: Record<string, unknown> } | undefined }[]
          | undefined
      }
    | undefined
}

/** The agent that a model wants to hand over to, if the event asks for that. */
export function transferTarget(event: TransferEvent): string | undefined {
  const parts = event.partial ? [] : (event.content?.parts ?? [])
  const call = parts.find(part => part.functionCall?.name === TRANSFER_TOOL)?.functionCall
  return call && String(call.args?.agentName ?? call.args?.agent_name ?? '')
}
