/**
 * Consecutive events of one role become one, so that no model sees two turns of one side in a row. Only
 * within one author and branch; never a tool's result with anything else, never a call with a result, never
 * the user's words with what Lango wrote in the user's role, never a part that carries a signature (it is valid only where it was made), never events that ADK treats as a
 * whole (compaction, confirmations, workflow nodes).
 */
import { isSyntheticMetadata } from '../../session/token-budget-truncate.js'
import type { Content, Event, Part } from '../sdk.js'

/**
 * Events without content (an error, usage) do not stand between two that follow each other in what is said.
 *
 * @spec EventsAdapter.All (merging)
 */
export function mergeSameRole(events: readonly Event[]): Event[] {
  const merged: Event[] = []
  const placeOfCall = new Map<string, number>()
  let spoken = -1
  for (const event of events) {
    const last = merged[spoken]
    if (last && canMerge(last, event, placeOfCall)) {
      merged[spoken] = merge(last, event)
    } else {
      merged.push(event)
      if (event.content || 'isCompacted' in event) spoken = merged.length - 1
    }
    for (const { functionCall } of event.content?.parts ?? []) {
      if (functionCall?.id) placeOfCall.set(functionCall.id, spoken)
    }
  }
  return merged
}

function canMerge(first: Event, second: Event, placeOfCall: ReadonlyMap<string, number>): boolean {
  const [left, right] = [first.content, second.content]
  if (!isPlain(first, left) || !isPlain(second, right)) return false
  if (left.role !== right.role || first.author !== second.author || first.branch !== second.branch)
    return false
  if (first.isolationScope !== second.isolationScope) return false
  if (isSyntheticMetadata(first.customMetadata) !== isSyntheticMetadata(second.customMetadata)) return false
  const [leftResults, rightResults] = [left.parts.filter(isResult), right.parts.filter(isResult)]
  if (leftResults.length === 0 && rightResults.length === 0) return true
  if (leftResults.length < left.parts.length || rightResults.length < right.parts.length) return false
  return answerOneEvent([...leftResults, ...rightResults], placeOfCall)
}

type Filled = Content & { parts: Part[] }

function isPlain(event: Event, content: Content | undefined): content is Filled {
  if (!content?.role || !content.parts?.length) return false
  if (UNMERGED.some(field => event[field as keyof Event] !== undefined)) return false
  const { agentState, endOfAgent } = event.actions
  if (agentState !== undefined || endOfAgent !== undefined || event.longRunningToolIds?.length) return false
  return !content.parts.some(part => part.thoughtSignature !== undefined || isRequestToPerson(part))
}

const UNMERGED = ['isCompacted', 'errorCode', 'interrupted', 'output', 'route', 'nodeInfo']

/** ADK leaves events with these calls out of every request, with all that is in them. */
function isRequestToPerson(part: Part): boolean {
  const name = part.functionCall?.name ?? part.functionResponse?.name
  return name?.startsWith('adk_request_') ?? false
}

function isResult(part: Part): boolean {
  return part.functionResponse !== undefined
}

/** ADK puts a whole result event behind the call event that it answers, so it may answer only one. */
function answerOneEvent(results: readonly Part[], placeOfCall: ReadonlyMap<string, number>): boolean {
  const ids = results.map(part => part.functionResponse?.id ?? '')
  const places = new Set(ids.map(id => placeOfCall.get(id)))
  return new Set(ids).size === ids.length && places.size === 1 && !places.has(undefined)
}

function merge(first: Event, second: Event): Event {
  const actions = { ...first.actions, ...second.actions }
  for (const field of ['stateDelta', 'artifactDelta', 'requestedAuthConfigs'] as const) {
    Object.assign(actions, { [field]: { ...first.actions[field], ...second.actions[field] } })
  }
  actions.requestedToolConfirmations = {
    ...first.actions.requestedToolConfirmations,
    ...second.actions.requestedToolConfirmations,
  }
  const parts = [...(first.content?.parts ?? []), ...(second.content?.parts ?? [])]
  // The later time counts: what ADK's compaction has not summarised yet must stay visible.
  const { id, invocationId } = first
  return { ...first, ...second, id, invocationId, actions, content: { ...first.content, parts } }
}
