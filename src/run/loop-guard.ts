import { toJsonData } from '../base/json.js'
import { stableJson } from '../base/stable-json.js'

/** When repeated calls count as a loop. */
export interface LoopLimit {
  /** The model is warned after this many equal calls with equal results in a row. Default 3. */
  warnAfter?: number | undefined
  /** The run ends with one last answer after this many. Default 5. */
  stopAfter?: number | undefined
}

/** The agent and the branch that an event or a request belongs to. */
export interface Lane {
  author?: string | undefined
  branch?: string | undefined
}

export interface CountedCall {
  name?: string | undefined
  args?: Readonly<Record<string, unknown>> | undefined
}

export interface CountedResult {
  name?: string | undefined
  response?: Readonly<Record<string, unknown>> | undefined
}

/** Calls that were made again and again. */
export interface Repetition {
  /** As in `search({"query":"a"})`. */
  calls: string
  times: number
}

type LoopVerdict = 'continue' | 'warn' | 'stop'

const WARN_AFTER = 3
const STOP_AFTER = 5

/**
 * Detects a model that repeats itself: the same calls with the same arguments and the same results, turn after turn.
 * Ids and the order of keys do not matter. Another call, another result and another execution of the agent each begin
 * a new count. Agents on parallel branches are watched separately.
 */
export class LoopGuard {
  readonly #lanes = new Map<string, LaneState>()
  readonly #warnAfter: number
  readonly #stopAfter: number

  constructor(limit: LoopLimit | false = {}) {
    this.#warnAfter = limit ? (limit.warnAfter ?? WARN_AFTER) : Number.POSITIVE_INFINITY
    this.#stopAfter = limit ? (limit.stopAfter ?? STOP_AFTER) : Number.POSITIVE_INFINITY
  }

  /**
   * An agent makes a request. `execution` is an object that stands for one execution of the agent, such as its context
   * in ADK: a loop agent executes its agents repeatedly, which is not a repetition by a model.
   */
  beginStep(lane: Lane, execution: object): void {
    if (this.#laneOf(lane).execution?.deref() === execution) return
    this.#lanes.set(nameOf(lane), { ...newLane(), execution: new WeakRef(execution) })
  }

  /** A turn of the model that calls tools. */
  called(lane: Lane, calls: readonly CountedCall[]): void {
    const state = this.#laneOf(lane)
    state.turn = { calls: calls.map(callText).join(', '), results: [] }
    state.open = calls.length
  }

  /** Results of that turn. They may come in several events; the last one completes the turn. */
  answered(lane: Lane, results: readonly CountedResult[]): { verdict: LoopVerdict; repetition: Repetition } {
    const state = this.#laneOf(lane)
    const { turn, last } = state
    turn.results.push(...results)
    state.open -= results.length
    if (state.open !== 0)
      return { verdict: 'continue', repetition: { calls: turn.calls, times: state.times } }
    state.times = last && isSameTurn(last, turn) ? state.times + 1 : 1
    state.last = turn
    return { verdict: this.#judge(state.times), repetition: { calls: turn.calls, times: state.times } }
  }

  #judge(times: number): LoopVerdict {
    if (times >= this.#stopAfter) return 'stop'
    return times === this.#warnAfter ? 'warn' : 'continue'
  }

  #laneOf(lane: Lane): LaneState {
    const name = nameOf(lane)
    const state = this.#lanes.get(name) ?? newLane()
    this.#lanes.set(name, state)
    return state
  }
}

interface Turn {
  calls: string
  results: CountedResult[]
}

interface LaneState {
  execution?: WeakRef<object>
  /** The turn that is watched, and how many of its results are missing. */
  turn: Turn
  open: number
  /** The last whole turn, and how often it was made in a row. */
  last?: Turn
  times: number
}

function newLane(): LaneState {
  return { turn: { calls: '', results: [] }, open: 0, times: 0 }
}

function nameOf({ author = '', branch = '' }: Lane): string {
  return JSON.stringify([author, branch])
}

/** Results may be large: they are compared only where the calls are equal. */
function isSameTurn(one: Turn, other: Turn): boolean {
  return one.calls === other.calls && resultsText(one) === resultsText(other)
}

function resultsText({ results }: Turn): string {
  const texts = results.map(({ name = '', response = {} }) => `${name}: ${stableJson(toJsonData(response))}`)
  return texts.sort().join('\n')
}

function callText({ name = '', args = {} }: CountedCall): string {
  return `${name}(${stableJson(args)})`
}

/** What the model reads after it has repeated itself. */
export function loopWarning(repetition: Repetition): string {
  return `[System: ${repetitionText(repetition)}. Do something else, or answer with what you have.]`
}

export function repetitionText({ calls, times }: Repetition): string {
  const shown = calls.length > SHOWN_CALLS ? `${calls.slice(0, SHOWN_CALLS)}…` : calls
  return `${shown} was called ${times} times in a row with the same arguments and returned the same result each time`
}

const SHOWN_CALLS = 200
