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
  if (dollars === 0) return 'free'
  if (dollars < 0.0001) return '< $0.0001'
  return `$${dollars.toFixed(dollars < 0.01 ? 4 : dollars < 1 ? 3 : 2)}`
}

/** What a profile stands for. Its name is shown with it. */
export function profileTitle(profile: string): string {
  return own(PROFILE_TITLES, profile) ?? profile
}

/** How a run ended. */
export function finishText(reason: string | undefined): string {
  return reason === undefined ? 'not finished' : (own(FINISH_TEXTS, reason) ?? reason)
}

function trimmed(value: number): string {
  return value < 100 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value))
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

const FINISH_TEXTS: Readonly<Record<string, string>> = {
  stop: 'finished',
  length: 'ended at the longest length of an answer',
  'turn-limit': 'stopped at the turn limit',
  loop: 'stopped in a loop',
  budget: 'stopped at the budget',
  aborted: 'stopped by the user',
  error: 'failed',
}
