/**
 * What a run records of the events that ADK appends, as the session service sees it. A resumed run is driven through the
 * same events again: those that are recorded write nothing.
 */
import type { Message, SessionKey, State } from './message.js'

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
