import type { SessionLint } from './types.js'

/** Whether a session can switch, in a word and in a sentence. Repair may be switched off. */
export function lintVerdict(
  { profiles }: Pick<SessionLint, 'profiles'>,
  repairMode: string,
): { answer: string; reason: string } {
  const refused = profiles.filter(profile => profile.refused).length
  const stored = `Sent as it is stored, ${refused} of ${profiles.length} would refuse the history.`
  if (refused === 0) {
    return { answer: 'Yes, to any of them.', reason: 'All would take the history as it is stored.' }
  }
  if (repairMode === 'repair') {
    return {
      answer: 'Yes, to any of them.',
      reason: `${stored} Lango repairs it before each request, so the session continues with every provider.`,
    }
  }
  return {
    answer: `To ${profiles.length - refused} of ${profiles.length}.`,
    reason: `${stored} Repair is switched off here (history.repair is ${repairMode}); set it to repair to continue.`,
  }
}
