/** Tabs of one browser tell each other that a run has begun. */
const CHANNEL = 'lango-runs'

/** Notifies other tabs of this browser at once; all others find the run by polling. */
export function announce(sessionId: string): void {
  const channel = new BroadcastChannel(CHANNEL)
  channel.postMessage(sessionId)
  channel.close()
}

/** Calls the listener with the session of every run that another tab of this browser starts. */
export function listenForRuns(signal: AbortSignal, listener: (sessionId: unknown) => void): void {
  const channel = new BroadcastChannel(CHANNEL)
  channel.onmessage = event => listener(event.data)
  signal.addEventListener('abort', () => channel.close(), { once: true })
}
