/** Tool names in the form that the wire takes, and the way back, so that answers come under the real name. */
import type { Profile } from './profile.js'
import { type Entry, replaceAllParts, type StepContext } from './receipt.js'
import { shortHash } from './short-hash.js'

/** Maps the names in calls and results that the profile refuses. */
export function mapNames(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, mappedNames, report } = context
  const called = new Set<string>()
  return replaceAllParts(entries, (part, _, entry) => {
    if (part.type !== 'tool-call' && part.type !== 'tool-result') return part
    // Where results carry no name on the wire, theirs only follows the name of a mapped call.
    if (part.type === 'tool-result' && !profile.results.named && !called.has(part.name)) return part
    const name = toWireName(part.name, profile)
    if (name === part.name) return part
    mappedNames[name] = part.name
    called.add(part.name)
    const detail = `The tool name "${part.name}" was sent as "${name}".`
    report({ step: 'map-names', kind: 'rename', at: entry.at, detail })
    return { ...part, name }
  })
}

/**
 * The name of a tool on the wire: its own where the profile takes it, otherwise a legal name that ends in a
 * hash of the real one, so that two long names never become the same. Declarations must use it as well.
 */
export function toWireName(name: string, profile: Profile): string {
  if (profile.names.test(name)) return name
  const plain = name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 54)
  const legal = /^[a-zA-Z_]/.test(plain) ? plain : `_${plain}`.slice(0, 54)
  return `${legal}_${shortHash(name)}`
}
