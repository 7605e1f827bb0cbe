/**
 * What a run records of the events that ADK appends, as the session service sees it. A resumed run is driven through the
 * same events again: those that are recorded write nothing.
 */
import type { Message, SessionKey, State } from './message.js'
import type { NodeOutput } from './tool-calls.js'

/** `Event` is ADK's: this room does not know it. */
export interface SessionJournal<Event> {
  /**
   * The part of a session that was there before the recorded events; `undefined` when all of it is to be loaded.
   * Asked before each load.
   */
  viewOf(key: SessionKey): SessionView | undefined
  /**
   * The recorded form of an event that is appended again: the event takes it, and nothing is written. `undefined` when
   * the record ends before it. Throws when the record has something else in its place.
   */
  adopt(key: SessionKey, event: Event): AdoptedEvent | undefined
  /** Whether the answer of an agent's next model step is recorded, and is the only one of that step. */
  isAnswered(agentName: string, branch: string | undefined): boolean
  /** Stores a new event. */
  append(append: JournalledAppend<Event>): Promise<void>
}

export interface SessionView {
  /** The last message that was there. */
  throughSeq: number
  /** Changes of state that are to be taken back, the newest first. */
  undo: readonly StateUndo[]
}

/** A change of state, and the values of its keys before it. */
export interface StateUndo {
  readonly delta: State
  readonly before: State
}

export interface AdoptedEvent {
  /** The number of its message; absent for an event that is no message. */
  seq?: number | undefined
}

export interface JournalledAppend<Event> {
  key: SessionKey
  /** Whether the session is a nested one, of an agent inside a tool. */
  isNested: boolean
  event: Event
  /** What is stored for it; absent when it is stored already, or changes nothing but the state. */
  message: Message | undefined
  /** Without `temp:` keys. */
  stateDelta: State
  /** With them. */
  delta: State
  /** The values of the keys of `delta` before the event, as far as there were any. */
  before: State
}

/** The state before the changes. */
export function undoState(state: State, undo: readonly StateUndo[]): State {
  const earlier: State = { ...state }
  for (const { delta, before } of undo) {
    for (const key of Object.keys(delta)) {
      if (Object.hasOwn(before, key)) earlier[key] = before[key]
      else delete earlier[key]
    }
  }
  return earlier
}

/** What a run records of the nodes of a workflow. */
export interface NodeJournal<Event> {
  /** Does a part of the work of a node: what is done in it is recorded under the path of the node. */
  inside<Result>(path: string, work: () => Promise<Result>): Promise<Result>
  /** A node has made an event. Nodes around it may pass the event on as theirs. */
  made(event: Event, path: string): void
  /**
   * Begins an execution of a node whose work is recorded as a whole. `undefined`: it is not recorded. Throws when it must
   * not be executed.
   */
  begin(execution: NodeExecution): Promise<BegunNode | ReplayedNode<Event> | undefined>
}

/** An execution of a node: of one place in a graph there may be several, one after the other. */
export interface NodeExecution {
  readonly name: string
  readonly path: string
  readonly branch: string
  readonly invocationId: string
  readonly input: unknown
  readonly signal: AbortSignal
  /** Called when it is not known whether the node took effect. */
  output(): NodeOutput
}

/** A node that is executed. */
export interface BegunNode {
  readonly idempotencyKey: string
  readonly attempt: number
  /** The event is the last one of the execution: its end is stored with it. */
  endsWith(eventId: string, result: NodeEnd): void
  /** Stores the end of the execution, unless it is stored. */
  end(status: 'done' | 'failed' | 'unknown', result: NodeEnd): Promise<void>
}

/** How an execution of a node ended. */
export interface NodeEnd {
  /** The events that it made. */
  readonly events: readonly string[]
  /** Of one that has thrown: the message of the error and its class. */
  readonly error?: string | undefined
  readonly errorName?: string | undefined
}

/** A node that is not executed. */
export interface ReplayedNode<Event> {
  /** What an earlier attempt of the run has recorded of the execution. */
  readonly replayed?: { readonly events: readonly Event[]; readonly end: NodeEnd }
  /** Its output, when a person has confirmed that it took effect. */
  readonly confirmed?: unknown
}
