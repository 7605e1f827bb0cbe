import { useEffect, useMemo, useState } from 'react'
import { createClient } from '../../src/client/create-client.js'
import { ChatApp } from './chat-app.js'
import { ServerLink } from './server-link.js'
import { Logo } from './shared/icons.js'
import { readStored, writeStored } from './shared/stored.js'
import type { ModelChoice, ServerInfo } from './state/api.js'
import { problemOf, SERVER_LOST } from './state/problem-of.js'
import type { Problem } from './state/thread-state.js'
import { TokenGate } from './token-gate.js'

/** Pauses between attempts to reach a server that is not there yet. */
const RETRY_MS = 2000
const TOKEN_KEY = 'lango-token'

type Loaded =
  | { status: 'loading' }
  | { status: 'failed'; problem: Problem }
  | { status: 'ready'; info: ServerInfo; models: readonly ModelChoice[] }

/** Asks the server what it is; then the chat, or what stands in its way. */
export function App() {
  const [token, setToken] = useState(() => readStored(TOKEN_KEY, 'session'))
  const [attempt, setAttempt] = useState(0)
  const [loaded, setLoaded] = useState<Loaded>({ status: 'loading' })
  const link = useMemo(() => new ServerLink(), [])
  const client = useMemo(
    () => createClient({ fetch: link.fetch, ...(token ? { token } : {}) }),
    [link, token],
  )
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new attempt is a reason to ask again.
  useEffect(() => {
    let isCurrent = true
    Promise.all([client.info(), client.models().catch(() => ({ models: [] }))]).then(
      ([info, { models }]) => isCurrent && setLoaded({ status: 'ready', info, models }),
      (error: unknown) => isCurrent && setLoaded({ status: 'failed', problem: problemOf(error) }),
    )
    return () => {
      isCurrent = false
    }
  }, [client, attempt])
  const isWaiting = loaded.status === 'failed' && loaded.problem.code !== 'unauthorized'
  useEffect(() => {
    if (!isWaiting) return
    const timer = setInterval(() => setAttempt(count => count + 1), RETRY_MS)
    return () => clearInterval(timer)
  }, [isWaiting])
  if (loaded.status === 'ready')
    return <ChatApp client={client} link={link} info={loaded.info} models={loaded.models} />
  if (loaded.status === 'loading') return <div className="splash" role="status" aria-label="Loading" />
  if (loaded.problem.code === 'unauthorized') {
    const enter = (next: string) => {
      writeStored(TOKEN_KEY, next, 'session')
      setToken(next)
    }
    return <TokenGate isRefused={token !== undefined} onEnter={enter} />
  }
  return (
    <main className="empty-state splash" role="alert">
      <Logo size={52} />
      <h1>{loaded.problem.code === 'too-many' ? 'Too many attempts' : SERVER_LOST}</h1>
      <p>{loaded.problem.message}</p>
    </main>
  )
}
