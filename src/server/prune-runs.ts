import { messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RunStore } from '../session/session-store.js'

const HOUR_MS = 3_600_000

/** Forgets old run events now and every hour; messages are never touched. Returns what ends it. */
export function pruneRuns(runs: RunStore, keepMs: number, logger: Logger): () => void {
  const prune = async () => {
    try {
      const { events } = await runs.prune({ before: Math.max(0, Date.now() - keepMs) })
      if (events > 0) logger.info('Old run events were forgotten', { events })
    } catch (error) {
      logger.warn('Old run events could not be forgotten', { error: messageOf(error) })
    }
  }
  void prune()
  const timer = setInterval(() => void prune(), HOUR_MS)
  timer.unref()
  return () => clearInterval(timer)
}
