/**
 * A React hook on `lango/client`: sends messages of one session, shows the answer while it is written, and stops it. A
 * page that is loaded again follows the run that is still working.
 */
import { ClientError, type LangoClient } from 'lango/client'
import { useCallback, useEffect, useRef, useState } from 'react'

export interface RunState {
  status: 'idle' | 'running' | 'failed'
  /** The answer so far. */
  text: string
  /** One sentence, when it failed. */
  error: string
}

const IDLE: RunState = { status: 'idle', text: '', error: '' }

export function useRun(client: LangoClient, sessionId: string) {
  const [state, setState] = useState(IDLE)
  const runId = useRef('')
  const left = useRef(new AbortController())

  const follow = useCallback(
    async (id: string) => {
      const { signal } = left.current
      runId.current = id
      setState({ ...IDLE, status: 'running' })
      let text = ''
      let error = ''
      for await (const event of client.follow(id, { signal })) {
        if (event.type === 'text-delta') text += event.text
        if (event.type === 'error') error = event.error.message
        if (!signal.aborted) setState({ status: 'running', text, error })
      }
      if (!signal.aborted) setState({ status: error === '' ? 'idle' : 'failed', text, error })
    },
    [client],
  )

  const guard = useCallback(async (work: () => Promise<void>) => {
    try {
      await work()
    } catch (error) {
      // Every failure of the client is a ClientError: unreachable, refused, or an answer that is not Lango's.
      if (!(error instanceof ClientError)) throw error
      setState({ ...IDLE, status: 'failed', error: error.message })
    }
  }, [])

  const send = useCallback(
    (text: string) => guard(async () => follow((await client.start(sessionId, { text })).runId)),
    [client, sessionId, follow, guard],
  )

  const stop = useCallback(() => guard(() => client.stop(runId.current)), [client, guard])

  useEffect(() => {
    left.current = new AbortController()
    const { current } = left
    void guard(async () => {
      const session = await client.session(sessionId).catch((error: unknown) => {
        if (error instanceof ClientError && error.code === 'session-not-found') return undefined
        throw error
      })
      if (session?.activeRun && !current.signal.aborted) await follow(session.activeRun.runId)
    })
    return () => current.abort()
  }, [client, sessionId, follow, guard])

  return { ...state, send, stop }
}
