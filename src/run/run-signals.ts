import { messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RunSignal, RunStore } from '../session/session-store.js'

const POLL_MS = 250

/** Listens for what other processes say to a run: stop, or an answer to an approval request. */
export function watchSignals(
  runs: RunStore,
  runId: string,
  hear: (signal: RunSignal) => void,
  logger: Logger,
): () => void {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  const listen = async () => {
    try {
      for (const signal of await runs.takeSignals(runId)) hear(signal)
    } catch (error) {
      logger.debug('The signals of a run could not be read', { runId, error: messageOf(error) })
    }
    schedule()
  }
  const schedule = () => {
    if (stopped) return
    timer = setTimeout(() => void listen(), POLL_MS)
    // Listening alone keeps no process alive.
    timer.unref()
  }
  schedule()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}
