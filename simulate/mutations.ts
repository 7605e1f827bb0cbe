/** Mistakes that Lango could make, made on purpose: a simulation that does not find them proves nothing. */

import type { SessionKey } from '../src/session/message.js'
import type { RunOpening, RunStep } from '../src/session/run-store.js'
import type { SessionStore } from '../src/session/session-store.js'

export const MUTATIONS = [
  'unrecorded-start',
  'no-fence',
  'early-answer',
  'blind-retry',
  'second-run',
] as const

/**
 * `unrecorded-start`: a tool is executed before its start is stored. `no-fence`: the messages of
 * a process that lost its lease are stored. `early-answer`: a message is acknowledged before it is stored. `blind-retry`: payments without a key are
 * repeated when their outcome is unknown. `second-run`: a run id that is known begins another run.
 * Those of `early-answer` and `blind-retry` are in the clients and in the tools.
 */
export type Mutation = (typeof MUTATIONS)[number]

type Call = (name: string, invoke: () => Promise<unknown>) => Promise<unknown>
type Method = (...args: unknown[]) => Promise<unknown>

/** Replaces a store call, or leaves it (`undefined`). */
export type Mutate = (
  name: string,
  args: readonly unknown[],
  method: Method,
  call: Call,
) => Promise<unknown> | undefined

/** A mutation of all processes of one simulation; each of them has its own store. */
export function mutationOf(mutation: Mutation | undefined): ((store: SessionStore) => Mutate) | undefined {
  switch (mutation) {
    case undefined:
    case 'blind-retry':
    case 'early-answer':
      return undefined
    case 'unrecorded-start':
      return () => unrecordedStart
    case 'no-fence':
      return withoutFence()
    case 'second-run':
      return () => secondRun
  }
}

const unrecordedStart: Mutate = (name, [step], method, call) => {
  if (name !== 'runs.saveStep') return undefined
  const { calls = [] } = step as RunStep
  if (!calls.some(({ status }) => status === 'started')) return undefined
  const changed = calls.map(change =>
    change.status === 'started' ? { ...change, status: 'intent' } : change,
  )
  return call(name, () => method({ ...(step as RunStep), calls: changed }))
}

/** A message that the store refuses is stored all the same, with the fence of the newest lease or with none. */
function withoutFence(): (store: SessionStore) => Mutate {
  const newest = new Map<string, number>()
  const append = async (store: SessionStore, { key, message }: RunStep, error: unknown): Promise<unknown> => {
    const fence = newest.get(key.sessionId)
    if (!message || fence === undefined) throw error
    return store.appendMessage(key, message, { fence }).catch(() => store.appendMessage(key, message))
  }
  return store => (name, args, method, call) => {
    if (name === 'runs.saveStep') {
      const [step] = args as [RunStep]
      return call(name, () => method(step).catch(error => append(store, step, error)))
    }
    if (name !== 'openRun' && name !== 'acquireLease') return undefined
    const [given] = args as [RunOpening | SessionKey]
    const { sessionId } = 'key' in given ? given.key : given
    return call(name, async () => {
      const result = (await method(...args)) as { fence?: number; lease?: { fence: number } }
      const fence = result.fence ?? result.lease?.fence
      if (fence !== undefined) newest.set(sessionId, fence)
      return result
    })
  }
}

let copies = 0

/** Opens the run again under another id. */
const secondRun: Mutate = (name, [given], method, call) => {
  if (name !== 'openRun') return undefined
  const opening = given as RunOpening
  return call(name, async () => {
    const opened = (await method(opening)) as object
    if (!('known' in opened)) return opened
    copies += 1
    const runId = `${opening.runId.slice(0, -6)}${String(copies).padStart(6, '0')}`
    return method({ ...opening, runId, message: { ...opening.message, id: runId } } satisfies RunOpening)
  })
}
