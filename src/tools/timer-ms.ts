/** Node's timers end at once when they are told to wait for longer than this, about 25 days. */
const LONGEST_MS = 2_147_483_647

/** A time that a timer can wait, for a limit of any length. */
export function timerMs(limitMs: number): number {
  return Math.min(limitMs, LONGEST_MS)
}
