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
import { z } from 'zod'
import { markOrigin } from '../base/failure-origin.js'
import { AgentError, messageOf } from '../errors.js'
import type { NodeJournal, ReplayedNode } from '../session/session-journal.js'
import { callsByContext, type NodeOutput } from '../session/tool-calls.js'
import { ADK_ABORT } from './adk-quirks.js'
import {
  BaseNode,
  type BaseSessionService,
  type Event,
  isBaseAgent,
  isWorkflow,
  type NodeContext,
} from './sdk.js'

/** The events of nodes that wait until a session service has stored them. */
class NodeAppends {
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

/** What a session service does with the nodes that work with it. */
export interface NodeHooks {
  /** Called with each node before it begins. */
  onNode?: ((node: BaseNode) => void) | undefined
  /** Called before the first node begins: returns what records the nodes, so that a run can be resumed. */
  openNodes?: (() => NodeJournal<Event> | undefined) | undefined
}

/** What the nodes that work with a session service share. Most sessions have no nodes: it is made for the first one. */
export interface NodeService {
  readonly hooks: NodeHooks
  opened?: { nodes: NodeJournal<Event> | undefined; appends: NodeAppends; places: NodePlaces }
}

/** By session service. */
export const nodeServices = new WeakMap<BaseSessionService, NodeService>()

type Events = AsyncGenerator<Event, void, void>

/** Lets nodes that work with one of the session services wait for it. To be called once in a process. */
export function wrapNodes(): void {
  const run = BaseNode.prototype.run
  BaseNode.prototype.run = async function* (context, input) {
    const { sessionService } = context.invocationContext
    const service = sessionService && nodeServices.get(sessionService)
    service?.hooks.onNode?.(this)
    const work = () => run.call(this, context, input)
    if (!service) return yield* work()
    service.opened ??= { nodes: service.hooks.openNodes?.(), appends: new NodeAppends(), places: new Map() }
    const { nodes, appends, places } = service.opened
    places.set(context.nodePath, this)
    const events = nodes ? recordedEvents(this, { context, input, nodes, places, work }) : work()
    for await (const event of events) {
      yield event
      if (!event.partial) await appends.wait(context, event)
    }
  }
}

interface NodeWork {
  context: NodeContext
  input: unknown
  nodes: NodeJournal<Event>
  places: NodePlaces
  work(): Events
}

/** The nodes that work with a session service, by their paths. */
type NodePlaces = Map<string, BaseNode>

/** The events of a node, recorded under its path. */
async function* recordedEvents(node: BaseNode, given: NodeWork): Events {
  const { context, nodes } = given
  const { nodePath: path } = context
  const events = isWhole(node) ? wholeEvents(node, given) : given.work()
  try {
    for (;;) {
      const next = await nodes.inside(path, () => events.next())
      if (next.done) return
      nodes.made(next.value, path)
      yield next.value
    }
  } finally {
    await events.return()
  }
}

/**
 * Whether the work of a node is recorded as a whole: it is code of the user's. Agents, tools and workflows have records
 * of what they do, and nodes of ADK's own do nothing but pass values on.
 */
function isWhole(node: BaseNode): boolean {
  const isOfAdk = isWorkflow(node) || node.requiresAllPredecessors || 'inner' in node || 'tool' in node
  return !isBaseAgent(node) && !isOfAdk
}

/** An execution of a node that is recorded as a whole. One that an earlier attempt of the run has ended is not repeated. */
async function* wholeEvents(node: BaseNode, { context, input, nodes, places, work }: NodeWork): Events {
  const signal = context.abortSignal ?? context.invocationContext.abortSignal ?? new AbortController().signal
  const { nodePath: path, branch = '', invocationId } = context
  const output = () => outputOf(node, path, places)
  const begun = await nodes.begin({ name: node.name, path, branch, invocationId, input, signal, output })
  if (!begun) return yield* work()
  if (!('attempt' in begun)) return yield* eventsAgain(node, context, begun)
  callsByContext.set(context, begun)
  const shape = shapeOfResult(node, context)
  const made: string[] = []
  try {
    for await (const event of work()) {
      if (!event.partial) made.push(event.id)
      // The state that a function has set follows a question in an event of its own.
      const isFollowed =
        event.longRunningToolIds?.length && Object.keys(context.actions.stateDelta).length > 0
      const isLast = shape.isValue && !isFollowed
      if (isLast) begun.endsWith(event.id, { events: [...made] })
      yield event
    }
    await begun.end('done', { events: made })
  } catch (error) {
    markOrigin(error, { node: node.name })
    if (signal.aborted || isNamed(error, ADK_ABORT)) await begun.end('unknown', { events: made })
    // It waits for a node that it runs, which has a record of its own.
    else if (isNamed(error, 'NodeInterruptedError')) await begun.end('done', { events: made })
    else await begun.end('failed', { events: made, error: messageOf(error), errorName: classOf(error) })
    throw error
  }
}

/** The output of a node: its schema, and whether anything but the run's answer or a model depends on it. */
function outputOf(node: BaseNode, path: string, places: NodePlaces): NodeOutput {
  const { outputSchema } = node
  const isUsed = outputSchema !== undefined || isOutputUsed(node, path, places)
  // Other schemas than Zod's are not described here; ADK checks the output with them.
  if (typeof outputSchema !== 'object' || !('_zod' in outputSchema)) return { isUsed }
  try {
    return { isUsed, schema: z.toJSONSchema(outputSchema as unknown as z.ZodType, { io: 'input' }) }
  } catch {
    return { isUsed }
  }
}

/** True if another node gets the output, or code that runs the node. The last nodes of a workflow make its output. */
function isOutputUsed({ name }: BaseNode, path: string, places: NodePlaces): boolean {
  const above = path.slice(0, Math.max(0, path.lastIndexOf('.')))
  const parent = places.get(above)
  if (!parent || above === '') return false
  if (!isWorkflow(parent) || !parent.graph) return true
  const isFollowed = parent.graph.edges.some(({ fromNode }) => fromNode.name === name)
  return isFollowed || isOutputUsed(parent, above, places)
}

async function* eventsAgain(node: BaseNode, context: NodeContext, begun: ReplayedNode<Event>): Events {
  const { replayed, confirmed } = begun
  if (!replayed) {
    // The method is ADK's own; it declares it for subclasses.
    const toEvent: (context: NodeContext, value: unknown) => Event | null = Reflect.get(node, 'toEvent')
    const event = toEvent.call(node, context, confirmed)
    if (event) yield event
    return
  }
  yield* replayed.events
  const { error, errorName } = replayed.end
  // ADK decides by the name of the class whether the node is run again.
  if (error !== undefined) throw Object.assign(new AgentError('internal', error), { name: errorName })
}

/**
 * Finds out whether the function of a node returns a value, whose event is then the only one, or events one by one. Known
 * when its first event comes. A node of the user's own class may always make more of them.
 */
function shapeOfResult(node: BaseNode, context: NodeContext): { readonly isValue: boolean } {
  const shape = { isValue: false }
  const handler: unknown = Reflect.get(node, 'handler')
  if (typeof handler !== 'function') return shape
  shapes.set(context, shape)
  if (watched.has(handler)) return shape
  const watching = (given: NodeContext, input: unknown): unknown => {
    const result: unknown = handler.call(node, given, input)
    const own = shapes.get(given)
    if (own) own.isValue = !isIterator(result)
    return result
  }
  watched.add(watching)
  Reflect.set(node, 'handler', watching)
  return shape
}

const shapes = new WeakMap<NodeContext, { isValue: boolean }>()
const watched = new WeakSet<object>()

function isIterator(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'next' in value
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name
}

/** As ADK names errors when it decides whether a node is run again. */
function classOf(error: unknown): string {
  return error instanceof Error && error.constructor.name !== 'Error'
    ? error.constructor.name
    : String(Reflect.get(Object(error), 'name') ?? 'Error')
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

function leftAlone(): AgentError {
  const error = new AgentError('aborted', 'The workflow was left: nothing reads its events any more.')
  return Object.assign(error, { name: ADK_ABORT })
}
