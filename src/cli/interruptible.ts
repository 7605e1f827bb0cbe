import { AgentError } from '../errors.js'
import type { Io } from './io.js'

/** The exit code that shells expect after Ctrl-C. */
const INTERRUPTED = 130

/**
 * Runs work that must clean up when it is interrupted. The first Ctrl-C aborts the signal, which the work checks
 * with `signal.throwIfAborted()`; the second exits at once.
 */
export async function interruptible(io: Io, work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const stop = new AbortController()
  const onSignal = () => {
    if (stop.signal.aborted) io.exit(INTERRUPTED)
    stop.abort(new AgentError('aborted', 'Interrupted.'))
  }
  io.signals.on('SIGINT', onSignal)
  io.signals.on('SIGTERM', onSignal)
  try {
    return await work(stop.signal)
  } catch (error) {
    if (!stop.signal.aborted) throw error
    io.stderr.write(`lango: ${error instanceof AgentError ? error.message : 'Interrupted.'}\n`)
    return INTERRUPTED
  } finally {
    io.signals.off('SIGINT', onSignal)
    io.signals.off('SIGTERM', onSignal)
  }
}
