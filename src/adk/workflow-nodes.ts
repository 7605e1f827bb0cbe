/**
 * Nodes of ADK's workflows over Lango's session service. An agent that is run alone continues when its runner has stored
 * its last event. The nodes of a workflow put their events into a queue and continue at once: with a store that takes
 * longer than ADK's own, which keeps sessions in memory, a second request lacked its own call and result, the next node
 * did not see the state and the output of the one before, and tools were called twice.
 *
 * Here a node continues when its event is stored, or when the reader of the queue has read past it without storing it.
 * A queue that is closed has lost its reader: its nodes end, as agents do that are not read any more.
 *
 * ADK offers no place for this, so the method that runs every node is wrapped, once per process. Nothing changes for
 * nodes that work with another session service.
 */
import { AgentError } from '../errors.js'
import { BaseNode, type BaseSessionService, type Event, type NodeContext } from './sdk.js'

/** The events of nodes that wait until a session service has stored them. */
export class NodeAppends {
  readonly #waiting = new Map<string, () => void>()

  /** An event is stored. */
  stored({ id }: Event): void {
    this.#waiting.get(id)?.()
  }

  /** Resolves when the event is stored or left out. Throws when nothing reads the events of the node any more. */
  async wait(context: NodeContext, event: Event): Promise<void> {
    const queue = queueOf(context.channel)
    const signal = context.abortSignal ?? context.invocationContext.abortSignal
    if (signal?.aborted || queue.isIdle) return
    let isStored = false
    if (!queue.isClosed)
      await new Promise<void>(resolve => {
        const done = () => {
          this.#waiting.delete(event.id)
          queue.listeners.delete(done)
          signal?.removeEventListener('abort', done)
          resolve()
        }
        this.#waiting.set(event.id, () => {
          isStored = true
          done()
        })
        queue.listeners.add(done)
        signal?.addEventListener('abort', done)
      })
    if (queue.isClosed && !isStored) throw leftAlone()
  }
}

/** Lets nodes that work with a session service wait for it. `onNode` is called with each node before it begins. */
export function appendsOfNodes(
  sessions: BaseSessionService,
  onNode: ((node: BaseNode) => void) | undefined,
): NodeAppends {
  wrapNodes()
  const appends = new NodeAppends()
  services.set(sessions, { appends, onNode })
  return appends
}

const services = new WeakMap<
  object,
  { appends: NodeAppends; onNode: ((node: BaseNode) => void) | undefined }
>()
let isWrapped = false

function wrapNodes(): void {
  if (isWrapped) return
  isWrapped = true
  const run = BaseNode.prototype.run
  BaseNode.prototype.run = async function* (context, input) {
    const { sessionService } = context.invocationContext
    const service = sessionService && services.get(sessionService)
    service?.onNode?.(this)
    const events = run.call(this, context, input)
    if (!service) return yield* events
    for await (const event of events) {
      yield event
      if (!event.partial) await service.appends.wait(context, event)
    }
  }
}

/** What is seen of a queue of ADK's. */
interface WatchedQueue {
  /** Its reader has read everything and waits for more. */
  readonly isIdle: boolean
  readonly isClosed: boolean
  /** Called when it becomes idle or is closed. */
  readonly listeners: Set<() => void>
}

type Queue = NodeContext['channel']

const queues = new WeakMap<Queue, WatchedQueue>()

function queueOf(channel: Queue): WatchedQueue {
  const known = queues.get(channel)
  if (known) return known
  const listeners = new Set<() => void>()
  const tell = () => {
    for (const listener of [...listeners]) listener()
  }
  // ADK declares it private: the readers that wait.
  const readers: unknown = Reflect.get(channel, 'resolvers')
  if (Array.isArray(readers)) tellAfter(readers, 'push', tell)
  tellAfter(channel, 'close', tell)
  tellAfter(channel, 'fail', tell)
  const queue: WatchedQueue = {
    listeners,
    get isIdle() {
      return Array.isArray(readers) && readers.length > 0
    },
    get isClosed() {
      return channel.isClosed
    },
  }
  queues.set(channel, queue)
  return queue
}

/** Calls `tell` after each call of a method of the object. */
function tellAfter(object: object, method: string, tell: () => void): void {
  const original: (...args: unknown[]) => unknown = Reflect.get(object, method)
  Reflect.set(object, method, (...args: unknown[]) => {
    const result = original.apply(object, args)
    tell()
    return result
  })
}

/** ADK recognizes an abort by this name: such a node is not run again. */
function leftAlone(): AgentError {
  const error = new AgentError('aborted', 'The workflow was left: nothing reads its events any more.')
  return Object.assign(error, { name: 'InvocationAbortedError' })
}
