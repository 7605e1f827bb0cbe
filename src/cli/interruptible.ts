import { AgentError } from '../errors.js'

/** What a shell expects of a program that Ctrl-C has ended. */
const INTERRUPTED = 130

/**
 * Runs work that leaves something half done when it is killed. Ctrl-C asks it to stop and to tidy up, which it
 * does by `signal.throwIfAborted()` where it can; a second one does not wait.
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
