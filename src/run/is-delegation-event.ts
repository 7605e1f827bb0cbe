/** The little of an ADK event that turn counting looks at. */
export interface CountedEvent {
  partial?: boolean | undefined
  content?:
    | { parts?: readonly { functionCall?: { name?: string | undefined } | undefined }[] | undefined }
    | undefined
  actions?: { transferToAgent?: string | undefined } | undefined
}

/** The tool by which ADK hands a conversation to another agent. */
export const TRANSFER_TOOL = 'transfer_to_agent'

/**
 * Whether an event only routes the conversation. ADK-JS sets `transferToAgent` on the response event, so the
 * call event before it is known by the name of the tool.
 *
 * @spec isDelegationEvent
 */
export function isDelegationEvent(event: CountedEvent): boolean {
  const calls = callNames(event)
  if (calls.length > 0) return calls.every(name => name === TRANSFER_TOOL)
  return Boolean(event.actions?.transferToAgent)
}

/** The names of the tools that an event calls, in order. */
export function callNames(event: CountedEvent): string[] {
  return (event.content?.parts ?? []).flatMap(part =>
    part.functionCall ? [part.functionCall.name ?? ''] : [],
  )
}
