import type { ModelChoice } from './api.js'
import { formatTokens } from './format.js'

/** One line of the list of models. */
export interface ModelLine {
  key: string
  /** Absent when it cannot be chosen: its provider has no key. */
  reference?: string
  name: string
  provider: string
  facts: string
}

/** The models that fit a search. Those that can answer come first; providers without a key are one line each. */
export function modelLines(models: readonly ModelChoice[], search: string): ModelLine[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const found = models.filter(({ reference }) => words.every(word => reference.toLowerCase().includes(word)))
  const usable = found.filter(({ keyPresent }) => keyPresent)
  const locked = found.filter(({ keyPresent }) => !keyPresent)
  const lines = usable.map(lineOf)
  if (words.length > 0) return [...lines, ...locked.map(lockedLine)].slice(0, MOST_LINES)
  const providers = new Set(locked.map(({ provider }) => provider))
  const closed = [...providers].map(name => providerLine(locked.filter(({ provider }) => provider === name)))
  return [...lines.slice(0, MOST_LINES), ...closed]
}

const MOST_LINES = 200

function lineOf({ reference, id, provider, contextWindow, price }: ModelChoice): ModelLine {
  const isFree = price?.input === 0 && price.output === 0
  const cost = price ? `$${price.input} in, $${price.output} out per M` : 'price unknown'
  return {
    key: keyOf(reference),
    reference,
    name: id,
    provider,
    facts: `${formatTokens(contextWindow)} · ${isFree ? 'free' : cost}`,
  }
}

function lockedLine({ reference, id, provider, keyVariable }: ModelChoice): ModelLine {
  return { key: keyOf(reference), name: id, provider, facts: keyText(keyVariable) }
}

function providerLine(choices: readonly ModelChoice[]): ModelLine {
  const { provider = '', keyVariable } = choices[0] ?? {}
  const name = `${choices.length} ${choices.length === 1 ? 'model' : 'models'}`
  return { key: `locked-${keyOf(provider)}`, name, provider, facts: keyText(keyVariable) }
}

function keyText(variable: string | undefined): string {
  return variable === undefined ? 'no key' : `set ${variable}`
}

/** Names of elements have no spaces. */
function keyOf(reference: string): string {
  return reference.replaceAll(/[^\w.-]/g, '_')
}
