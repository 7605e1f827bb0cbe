/**
 * The contents of a request as the session has them. ADK's own pass puts results behind their calls, keeps the last of
 * several results for one call, leaves out what stands between a call and its late result, and drops messages that begin
 * with an empty text; it reports none of it. Where it would do so, the contents are handed over in their stored order
 * instead: repair then brings them into an order that the model takes, and reports each change.
 */
import { isRequestTool } from '../base/names.js'
import { ACCOUNT_HEADING, isRequestStandIn } from './adk-quirks.js'
import type { Content, Event, LlmAgent, LlmRequest, Part } from './sdk.js'

type RequestProcessor = LlmAgent['requestProcessors'][number]

/** Replaces ADK's pass over the contents in an agent. `original` is ADK's own. */
export function keepStoredOrder(agent: LlmAgent, original: RequestProcessor): LlmAgent {
  const { requestProcessors } = agent
  const at = requestProcessors.indexOf(original)
  if (at >= 0) requestProcessors[at] = inStoredOrder(original)
  return agent
}

function inStoredOrder(original: RequestProcessor): RequestProcessor {
  return {
    async *runAsync(invocation, llmRequest) {
      const { session, branch, isolationScope } = invocation
      const agent = invocation.agent as LlmAgent
      const included = () => session.events.filter(event => isIncluded(event, branch, isolationScope))
      if (agent.includeContents === 'default' && isAnswered(invocation.sessionService, agent.name, branch)) {
        contentsWhenRead(llmRequest, () => contentsOf(included(), agent.name))
        return
      }
      // What was compacted is replaced by its summary, which only ADK writes.
      const isWhole =
        agent.includeContents === 'default' && !session.events.some(event => 'isCompacted' in event)
      const events = isWhole ? included() : []
      if (isInOrder(events, agent.name)) yield* original.runAsync(invocation, llmRequest)
      else llmRequest.contents = contentsOf(events, agent.name)
    },
  }
}

/** `SessionServiceAdapter`: it knows what an earlier attempt of its run was answered. */
interface RecordedAnswers {
  /** Whether the answer of an agent's next model step is recorded, and is the only one of that step. */
  isAnswered(agentName: string, branch: string | undefined): boolean
}

function isAnswered(sessions: object | undefined, agentName: string, branch: string | undefined): boolean {
  return sessions !== undefined && 'isAnswered' in sessions
    ? (sessions as RecordedAnswers).isAnswered(agentName, branch)
    : false
}

/**
 * A request whose answer is recorded is not sent. Its contents are made only for a tool or a callback that reads them: the
 * copies of a long history at each of its steps would be most of the work of a replay.
 */
function contentsWhenRead(llmRequest: LlmRequest, make: () => Content[]): void {
  let contents: Content[] | undefined
  Object.defineProperty(llmRequest, 'contents', {
    get: () => {
      contents ??= make()
      return contents
    },
    set: (given: Content[]) => {
      contents = given
    },
    enumerable: true,
    configurable: true,
  })
}

/** As ADK decides it, except for messages that begin with an empty text. */
function isIncluded(event: Event, branch: string | undefined, scope: string | undefined): boolean {
  const { content } = event
  if (!content?.role || !content.parts?.length || isRequestStandIn(event)) return false
  const isElsewhere =
    branch && event.branch && branch !== event.branch && !branch.startsWith(`${event.branch}.`)
  if (isElsewhere || (event.isolationScope !== undefined && event.isolationScope !== scope)) return false
  return !content.parts.some(part => isRequestTool((part.functionCall ?? part.functionResponse)?.name))
}

/** Whether ADK passes the events on as they are: each result event follows the event of its calls, once. */
function isInOrder(events: readonly Event[], agentName: string): boolean {
  const answered = new Set<string>()
  return events.every((event, index) => {
    const parts = event.content?.parts ?? []
    if (parts[0]?.text === '') return false
    const results = isForeign(event, agentName) ? [] : parts.flatMap(part => part.functionResponse ?? [])
    if (results.length === 0) return true
    const calls = new Set(callIds(events[index - 1]))
    return results.every(({ id }) => {
      const isFirst = id !== undefined && calls.has(id) && !answered.has(id)
      if (id !== undefined) answered.add(id)
      return isFirst
    })
  })
}

function callIds(event: Event | undefined): string[] {
  return (event?.content?.parts ?? []).flatMap(({ functionCall }) =>
    functionCall?.id ? [functionCall.id] : [],
  )
}

function isForeign({ author }: Event, agentName: string): boolean {
  return author !== agentName && author !== 'user'
}

function contentsOf(events: readonly Event[], agentName: string): Content[] {
  return events.map(event =>
    isForeign(event, agentName) ? accountOf(event) : copyOf(event.content as Content),
  )
}

/** The event of another agent, in ADK's words. */
function accountOf({ author, content }: Event): Content {
  const parts = (content?.parts ?? []).map((part): Part => {
    const { text, thought, functionCall, functionResponse } = part
    if (text && !thought) return { text: `[${author}] said: ${text}` }
    if (functionCall)
      return {
        text: `[${author}] called tool \`${functionCall.name}\` with parameters: ${asText(functionCall.args)}`,
      }
    if (functionResponse)
      return {
        text: `[${author}] tool \`${functionResponse.name}\` returned result: ${asText(functionResponse.response)}`,
      }
    return { ...part }
  })
  return { role: 'user', parts: [{ text: ACCOUNT_HEADING }, ...parts] }
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
}

/** Plugins may change what they are given. */
function copyOf(content: Content): Content {
  const parts = (content.parts ?? []).map((part): Part => {
    const copy = { ...part }
    if (part.functionCall) copy.functionCall = { ...part.functionCall }
    if (part.functionResponse) copy.functionResponse = { ...part.functionResponse }
    return copy
  })
  return { ...content, parts }
}
