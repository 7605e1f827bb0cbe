/** Texts that Lango itself writes into histories, and that readers of histories recognise. */

/** An answer of the agent, stored and hidden in chats: the next turn learns that the last one was aborted. */
export const ABORTED_MARKER = '[The user stopped this answer before it was complete.]'

/** The result of a call that no result was stored for. */
export const NO_RESPONSE_MARKER = '[no response available]'

/** Why a call has no result: its run was aborted, its process ended, or its run ended otherwise. */
export const RUN_STOPPED = 'The run was stopped.'
export const PROCESS_ENDED = 'The process of the run ended.'
export const RUN_ENDED_FIRST = 'The run ended before the tool did.'

/** What a model reads about a call that has no result, after the marker above. */
export const OUTCOME_UNKNOWN =
  'The call was started, and it is NOT known whether it took effect. Check whether it did before you repeat it.'
/** What the model reads before these words when it has repeated such a call. */
export const NOT_RUN_AGAIN = 'Not run again.'
export const MAY_BE_REPEATED = 'The call was interrupted and may be called again.'
export const CALL_NOT_RUN = 'The call did not run.'

/** Google's documented stand-in for a signature that does not exist. */
export const DUMMY_SIGNATURE = 'skip_thought_signature_validator'
