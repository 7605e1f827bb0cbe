import { AgentError } from '../errors.js'

/** The exit code that shells expect after Ctrl-C. */
const INTERRUPTED = 130

/**
 * Runs work that must clean up when it is interrupted. The first Ctrl-C aborts the signal, which the work checks
 * with `signal.throwIfAborted()`; the second exits at once.
 */
export async function interruptible(work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const stop = new AbortController()
  const onSignal = () => {
    if (stop.signal.aborted) process.exit(INTERRUPTED)
    stop.abort(new AgentError('aborted', 'Interrupted.'))
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  try {
    return await work(stop.signal)
  } catch (error) {
    if (!stop.signal.aborted) throw error
    process.stderr.write(`lango: ${error instanceof AgentError ? error.message : 'Interrupted.'}\n`)
    return INTERRUPTED
  } finally {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
  }
}
