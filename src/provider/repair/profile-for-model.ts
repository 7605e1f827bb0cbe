import type { ProfileName } from './profile.js'

/**
 * The profile that a model's name implies. `type` is a provider's type (`gemini`, `openai`, `anthropic`,
 * `openai-compatible`) or the name of a compatible server (`ollama`, `mistral`, …). A name that says nothing
 * gets the strictest profile of its vendor: what satisfies that one satisfies its siblings.
 */
export function profileForModel(
  type: string,
  model: string,
  api: 'chat' | 'responses' = 'responses',
): ProfileName {
  const name = model.toLowerCase()
  switch (type) {
    case 'gemini':
      return geminiProfile(name)
    case 'anthropic':
      return claudeProfile(name)
    case 'openai':
      return api === 'chat' ? 'openai-chat' : 'openai-responses'
    default:
      return SERVERS.get(type) ?? compatibleProfile(name)
  }
}

const SERVERS: ReadonlyMap<string, ProfileName> = new Map([
  ['mistral', 'mistral'],
  ['deepseek', 'deepseek-thinking'],
  ['groq', 'groq'],
  ['cerebras', 'groq'],
  ['vllm', 'vllm'],
  ['ollama', 'ollama'],
  ['demo', 'openai-chat'],
])

function geminiProfile(name: string): ProfileName {
  const match = /gemini-(\d+)(?:\.(\d+))?(-flash-lite)?/.exec(name)
  if (!match) return 'gemini-3-strict'
  const major = Number(match[1])
  const minor = Number(match[2] ?? 0)
  if (major < 3) return 'gemini-2'
  if (major > 3 || minor > 5 || (minor === 5 && match[3] !== undefined)) return 'gemini-3-strict'
  return 'gemini-3'
}

function claudeProfile(name: string): ProfileName {
  // The minor version has one or two digits; eight digits behind the major one are a date.
  const match = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2})(?!\d))?/.exec(name)
  if (!match) return name.includes('claude-instant') ? 'anthropic-4.5' : 'anthropic-4.6'
  const major = Number(match[1])
  const minor = Number(match[2] ?? 0)
  return major < 4 || (major === 4 && minor < 6) ? 'anthropic-4.5' : 'anthropic-4.6'
}

/** A server of unknown make: its model's family says which chat template will judge the history. */
function compatibleProfile(name: string): ProfileName {
  if (/(mi[sx]tral|magistral|codestral|devstral|pixtral|voxtral)/.test(name)) return 'mistral'
  if (/deepseek/.test(name)) return 'deepseek-thinking'
  return 'vllm'
}
