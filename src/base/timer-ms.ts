/** Node's timers fire at once when the delay is longer than this, about 25 days. */
const LONGEST_MS = 2_147_483_647

/** A delay that a timer accepts, for a limit of any length. */
export function timerMs(limitMs: number): number {
  return Math.min(limitMs, LONGEST_MS)
}
