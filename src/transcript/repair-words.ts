/** The steps of repair in words; the page and the terminal say the same. */
import { own } from '../base/own.js'

/** The step of a repair as a heading: `pair-calls` → `Pair calls`. */
export function stepTitle(step: string): string {
  return own(STEP_TITLES, step) ?? capital(step.replaceAll('-', ' '))
}

/** Why a provider needs what a repair step does. */
export function stepReason(step: string): string | undefined {
  return own(STEP_REASONS, step)
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const STEP_TITLES: Readonly<Record<string, string>> = {
  'drop-orphans': 'Results without a call',
  'pair-calls': 'Calls and their results',
  'note-arrivals': 'Results that came late',
  'prepend-user': 'A user message first',
  'merge-roles': 'Turns alternate',
  'map-ids': 'Call ids',
  'map-names': 'Tool names',
  'adopt-ids': 'Lost ids',
  'strip-signatures': 'Foreign signatures',
  'sign-calls': 'Missing signatures',
  'drop-foreign-reasoning': 'Foreign reasoning',
  'close-tail': 'Role of the last message',
  'drop-empties': 'Empty messages',
  'normalize-roles': 'Unknown roles',
  'separate-parts': 'Mixed messages',
  'place-system': 'System messages',
  'move-media': 'Images and files',
  'fix-arguments': 'Arguments of calls',
  'wrap-results': 'Form of results',
  'order-parts': 'Order inside a message',
  'close-reasoning': 'Reasoning that leads nowhere',
  'require-reasoning': 'Reasoning with calls',
  'translate-vendor-parts': 'Parts of another vendor',
  'well-formed-text': 'Broken characters',
  'limit-answer': 'Limits of an answer',
}

const STEP_REASONS: Readonly<Record<string, string>> = {
  'drop-orphans': 'Most providers refuse a result whose call is missing.',
  'pair-calls': 'Every call must be answered, in the place where the provider looks for the answer.',
  'note-arrivals': 'A result is moved to its call; where it arrived, a sentence says that it came.',
  'prepend-user': 'The provider wants a conversation that begins with a user.',
  'merge-roles': 'The provider wants user and assistant to take turns.',
  'map-ids': 'The id has a form that the provider does not take.',
  'map-names': 'The name has a form that the provider does not take.',
  'adopt-ids': 'The result had lost the id of its call.',
  'strip-signatures': 'A signature of another vendor cannot be verified.',
  'sign-calls': 'The provider demands a signature on calls of the current turn.',
  'drop-foreign-reasoning': 'Reasoning of another model cannot be verified.',
  'close-tail': 'The provider does not accept an assistant message as the last.',
  'drop-empties': 'Empty messages are refused.',
  'limit-answer': 'An answer has a longest length and a highest number of calls.',
  'move-media': 'The provider takes images and files in other places only.',
}
