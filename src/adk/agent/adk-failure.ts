/**
 * ADK reports what went wrong inside a run as words. This file is the only one that reads them; a contract
 * test holds each text, so that an upgrade of ADK which changes one fails there and not in production.
 */

export type AdkFailure =
  | { kind: 'unknown-agent'; name: string }
  | { kind: 'unknown-tool'; name: string }
  | { kind: 'model-call-limit' }
  | { kind: 'other' }

const PATTERNS: readonly { kind: AdkFailure['kind']; pattern: RegExp }[] = [
  { kind: 'unknown-agent', pattern: /^Agent (.+) not found in the agent tree\.$/ },
  { kind: 'unknown-agent', pattern: /failed to find agent: (.+?)\.?$/ },
  { kind: 'unknown-tool', pattern: /^Function (.+) is not found in the toolsDict\.$/ },
  { kind: 'model-call-limit', pattern: /^Max number of llm calls limit of/ },
]

/**
 * What an error message of ADK means. `whole`: the words must be all of it, because somebody else than ADK may
 * have quoted them in a longer sentence.
 */
export function adkFailure(message: string, { whole = false } = {}): AdkFailure {
  for (const { kind, pattern } of PATTERNS) {
    const found = pattern.exec(message)
    if (!found || (whole && found.index > 0)) continue
    if (kind === 'unknown-agent' || kind === 'unknown-tool') return { kind, name: found[1] ?? '' }
    return { kind: 'model-call-limit' }
  }
  return { kind: 'other' }
}
