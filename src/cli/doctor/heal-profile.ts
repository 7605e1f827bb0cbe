import type { Profile } from '../../provider/repair/profile.js'

/**
 * What every provider accepts, as one profile: each rule is the strictest that any of them has. What satisfies
 * it is refused by nobody. Joining neighbours is left to a step of its own, because only the stored messages
 * know whether the same agent said both; ids, names, signatures and media are mapped on every send and stay.
 */
export const HEALTHY: Profile = {
  name: 'healthy',
  vendor: 'lango',
  ids: { unique: 'no', onWire: 'sent' },
  names: /^/,
  first: 'user',
  needsTurn: false,
  last: 'any',
  alternation: false,
  system: 'one-leading',
  pairing: 'next',
  results: { inUser: 'no', grouped: true, inCallOrder: true, object: true, named: true, empty: false },
  callsLast: true,
  dropText: 'blank',
  reasoning: { keep: 'own', needs: 'follower', requiredWithCalls: false },
  signatures: 'optional',
  media: { types: /^/, inResult: true, inAssistant: true, remote: true },
  vendorParts: true,
  toolsRequired: false,
}
