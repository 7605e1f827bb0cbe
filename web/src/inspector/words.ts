/** Figures and names as people read them. */
import { own } from '../../../src/base/own.js'

const NUMBER = new Intl.NumberFormat('en')

/** 12,345 */
export function countText(value: number): string {
  return NUMBER.format(Math.round(value))
}

/** `1 message`, `2 messages` */
export function plural(count: number, word: string): string {
  return `${countText(count)} ${word}${count === 1 ? '' : 's'}`
}

/** 980, 12.3k, 1.05M: short enough for a legend. */
export function shortCount(value: number): string {
  if (value < 10_000) return countText(value)
  if (value < 1_000_000) return `${trimmed(value / 1000)}k`
  return `${trimmed(value / 1_000_000)}M`
}

/** 812 B, 7.7 KB, 1.2 MB */
export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${trimmed(bytes / 1024)} KB`
  return `${trimmed(bytes / 1024 / 1024)} MB`
}

/** Dollars, with as many digits as a small sum needs. */
export function costText(dollars: number): string {
  if (dollars === 0) return '$0'
  if (dollars < 0.0001) return '< $0.0001'
  return `$${dollars.toFixed(dollars < 0.01 ? 4 : dollars < 1 ? 3 : 2)}`
}

/** What a profile stands for. Its name is shown with it. */
export function profileTitle(profile: string): string {
  return own(PROFILE_TITLES, profile) ?? profile
}

/** The step of a repair as a heading: `pair-calls` → `Pair calls`. */
export function stepTitle(step: string): string {
  return own(STEP_TITLES, step) ?? capital(step.replaceAll('-', ' '))
}

/** Why a provider needs what a repair step does. */
export function stepReason(step: string): string | undefined {
  return own(STEP_REASONS, step)
}

/** How a run ended. */
export function finishText(reason: string | undefined): string {
  return reason === undefined ? 'not finished' : (own(FINISH_TEXTS, reason) ?? reason)
}

function trimmed(value: number): string {
  return value < 100 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value))
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const PROFILE_TITLES: Readonly<Record<string, string>> = {
  'gemini-2': 'Gemini 2',
  'gemini-3': 'Gemini 3',
  'gemini-3-strict': 'Gemini 3, strict endpoints',
  'openai-chat': 'OpenAI, Chat Completions',
  'openai-responses': 'OpenAI, Responses',
  'anthropic-4.5': 'Claude up to 4.5',
  'anthropic-4.6': 'Claude from 4.6',
  mistral: 'Mistral',
  'deepseek-thinking': 'DeepSeek, thinking',
  groq: 'Groq',
  vllm: 'vLLM',
  ollama: 'Ollama',
  demo: 'Demo model',
}

const STEP_TITLES: Readonly<Record<string, string>> = {
  'drop-orphans': 'Results without a call',
  'pair-calls': 'Calls and their results',
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
}

const STEP_REASONS: Readonly<Record<string, string>> = {
  'drop-orphans': 'Most providers refuse a result whose call is missing.',
  'pair-calls': 'Every call must be answered, in the place where the provider looks for the answer.',
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
  'move-media': 'The provider takes images and files in other places only.',
}

const FINISH_TEXTS: Readonly<Record<string, string>> = {
  stop: 'finished',
  'turn-limit': 'stopped at the turn limit',
  loop: 'stopped in a loop',
  budget: 'stopped at the budget',
  aborted: 'stopped by the user',
  error: 'failed',
}
