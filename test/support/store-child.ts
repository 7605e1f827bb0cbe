/**
 * What the tests of the store do in separate processes. The first argument names the task, the second is
 * the store's URL. A line is printed only after the operation it reports has been acknowledged.
 */
import { AgentError } from '../../src/errors.js'
import type { SessionKey } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'

const [task = '', url = '', appName = '', sessionId = '', countText = '0', writer = ''] =
  process.argv.slice(2)
const key: SessionKey = { appName, userId: 'ann', sessionId }
const count = Number(countText)

function say(line: string | number): void {
  process.stdout.write(`${line}\n`)
}

const TASKS: Record<string, (store: SessionStore) => Promise<void>> = {
  /** Opens and closes: the process must end by itself. */
  open: async () => say('open'),

  /** Closes without releasing a lease and a waiter. */
  async lease(store) {
    await store.acquireLease(key)
    const waiting = store.acquireLease(key, { waitMs: 60_000 }).catch(() => {})
    say('held')
    await store.close()
    await waiting
  },

  /** Appends messages to its session, which it creates if it does not exist. */
  async append(store) {
    if (!(await store.describeSession(key))) await store.createSession(key)
    for (let index = 0; index < count; index++) {
      const message = { role: 'user', content: `${writer} ${index}`, timestamp: 1, id: `${writer}-${index}` }
      const { seq } = await store.appendMessage(key, message, {
        stateDelta: { [`app:${writer}-${index}`]: index },
      })
      say(seq)
    }
  },

  /** Appends to a session that others write to as well, each message under a separate lease. */
  async take(store) {
    for (let index = 0; index < count; index++) {
      const lease = await store.acquireLease(key, { waitMs: 60_000 })
      const before = (await store.loadSession(key))?.totalMessages ?? 0
      const message = { role: 'user', content: `${writer} ${index}`, timestamp: 1, id: `${writer}-${index}` }
      const { seq } = await store.appendMessage(key, message, { fence: lease.fence })
      say(seq === before + 1 ? seq : `somebody wrote between: ${before} then ${seq}`)
      await lease.release()
    }
  },

  /** Appends without waiting, closes, and exits at once. */
  async quit(store) {
    for (let index = 0; index < count; index++)
      void store.appendMessage(key, { role: 'user', content: `${index}`, timestamp: 1 })
    await store.close()
    process.exit(0)
  },

  /** Begins a run and queues another one, and holds the lease until it is killed. */
  async accept(store) {
    const message = { role: 'user', content: 'Still there?', timestamp: 1 }
    const run = (name: string) => ({
      key,
      runId: `${name}-${appName}`,
      message: { ...message, id: name },
      input: { model: 'm' },
      events: [{ seq: 1, type: 'run-start' }],
    })
    await store.openRun(run('begun'), { ttlMs: count })
    await store.openRun({ ...run('queued'), orQueue: { events: [{ seq: 1, type: 'run-queued' }] } })
    say('accepted')
    await new Promise(resolve => setTimeout(resolve, 600_000))
  },

  /** Holds the leases of sessions, named with commas between them, until it is killed. */
  async hold(store) {
    const fences: number[] = []
    for (const name of sessionId.split(','))
      fences.push((await store.acquireLease({ ...key, sessionId: name }, { ttlMs: count })).fence)
    say(fences.join(' '))
    await new Promise(resolve => setTimeout(resolve, 600_000))
  },
}

try {
  const store = await openStore(url)
  await TASKS[task]?.(store)
  await store.close()
} catch (error) {
  process.stderr.write(
    error instanceof AgentError ? `${error.code}: ${error.message}\n` : `${String(error)}\n`,
  )
  process.exitCode = 1
}
