import type { Lease, SessionStore } from '../../src/session/session-store.js'
import { interceptStore } from './faulty-store.js'

export interface CrashableStore {
  store: SessionStore
  /** From now on nothing that was given this store can read or write, and its leases are free. */
  crash(): Promise<void>
  /** Resolves when the process has ended. */
  readonly over: Promise<void>
  /** How many writes have taken effect. */
  readonly writes: number
}

export interface CrashableOptions {
  /** The process ends when this write has taken effect, before it is acknowledged; the first one is 1. */
  endsAfter?: number
}

/** A store as a process sees it that may end at any moment: its calls then never return. */
export function crashable(
  store: SessionStore,
  { endsAfter = Infinity }: CrashableOptions = {},
): CrashableStore {
  let isOver = false
  let writes = 0
  let ended = () => {}
  const over = new Promise<void>(resolve => {
    ended = resolve
  })
  const leases: Lease[] = []
  const never = () => new Promise<never>(() => {})
  const guarded = interceptStore(store, async (name, invoke) => {
    if (isOver) return never()
    const result: unknown = await invoke()
    if (isLease(result)) leases.push(result)
    if (typeof result === 'object' && result !== null && 'lease' in result) leases.push(result.lease as Lease)
    if (WRITES.has(name)) writes += 1
    if (writes >= endsAfter) await crash()
    return isOver ? never() : result
  })
  const crash = async () => {
    isOver = true
    for (const lease of leases.splice(0)) await lease.release().catch(() => {})
    ended()
  }
  return {
    store: guarded,
    crash,
    over,
    get writes() {
      return writes
    },
  }
}

/** What changes a run or its session. */
const WRITES = new Set([
  'openRun',
  'appendMessage',
  'updateState',
  'createSession',
  'runs.saveStep',
  'runs.appendEvents',
  'runs.resumeRun',
])

function isLease(value: unknown): value is Lease {
  return typeof value === 'object' && value !== null && 'fence' in value && 'release' in value
}
