/** Names and texts in a history that ADK or Lango wrote. One home for every comparison with them. */

/** ADK's tool that transfers a run to another agent. */
export const TRANSFER_TOOL = 'transfer_to_agent'

/** Calls that begin so are ADK's own questions to a person, not calls of a tool. */
export const ADK_REQUEST = 'adk_request_'

/** ADK's question whether a tool may run; a function response of this name answers it. */
export const ADK_CONFIRMATION = 'adk_request_confirmation'

/** Stored in place of an answer that the user stopped. */
export const ABORTED_MARKER = '[The user stopped this answer before it was complete.]'

/** The result of a call whose tool gave none begins so. */
export const NO_RESPONSE = '[no response available]'
