import type { AgentError, AgentErrorCode, AgentErrorJson } from '../errors.js'
import type { HistoryCut } from '../session/message.js'
import type { Source } from '../session/sources.js'
import type { RunUsage } from '../session/usage.js'
import type { ApprovalOutcome, CallResponse, OnUnknown, OutcomeAnswer } from '../tool.js'

/**
 * Why a run ended. `stop` is the ordinary end; `length`: its last answer was ended at the longest length;
 * `waiting`: it has not ended, and waits for a person.
 */
export type RunFinishReason =
  | 'stop'
  | 'length'
  | 'turn-limit'
  | 'loop'
  | 'budget'
  | 'aborted'
  | 'error'
  | 'waiting'

/** The failure of the model before, or `recovered` when the first model is asked again. */
export type ModelSwitchReason = AgentErrorCode | 'recovered'

/** Why the next model call of a run is its last one. */
export type WrapUpReason = 'turn-limit' | 'delegation-limit' | 'loop' | 'budget'

/** Which limit of a budget leaves too little for another model call. */
export interface BudgetState {
  scope: 'run' | 'session' | 'day'
  limitUsd: number
  leftUsd: number
}

/** A change that was made to the history before it was sent, or a break: a request that does not extend the one before it. */
export interface RunRepair {
  step: string
  kind: string
  at: number
  detail: string
  /** Of a `prefix-break`: why the request does not extend the one before it, and how many tokens lose their cache. */
  reason?: string
  tokens?: number
}

/** Who made a request: requests of one agent on one branch extend each other. */
export interface RequestPlace {
  /** The app of the session; that of an agent inside a tool is its own. */
  app: string
  agent: string
  branch: string
}

/** Messages and their estimated tokens. */
export interface Counted {
  messages: number
  tokens: number
}

/** What the model layer reports of one request before it is sent, and what `store.runs` keeps of it. */
export interface SentRequest {
  model: string
  profile: string
  repairs: readonly RunRepair[]
  /** Breaks. In this release they are in `repairs`, too. */
  breaks?: readonly RunRepair[]
  mappedIds: Readonly<Record<string, string>>
  body: unknown
  /** What was left out of the history, when it was loaded and before it was sent. */
  cuts?: readonly HistoryCut[]
  /** The session as the store had it when the run opened it. */
  stored?: Counted
  /** The history that ADK handed over, before it was fitted. */
  history?: Counted
  /** Who made it; absent when an agent made it that the run does not know. */
  place?: RequestPlace
  /** What the next request of the same agent, branch and model keeps of it; JSON data. */
  decided?: object
  /** The runs that hold the last requests of the session's other agents, branches and models. */
  lanes?: Readonly<Record<string, string>>
}

/**
 * The events of a run, in order. Each names its session and run and has a number (`seq`) above that of the event before it.
 * A text takes one number for each of its characters and has the last of them; any other event takes one. After a crash the
 * next attempt continues at a multiple of 2^24. The first event is `run-start`, possibly after `run-queued` or
 * `run-scheduled`; the last is `run-finish`.
 */
export type RunEvent = RunEventBody & RunEventIdentity

export interface RunEventIdentity {
  sessionId: string
  runId: string
  seq: number
}

export type RunEventBody =
  /** The run was accepted and waits for its session. */
  | { type: 'run-queued'; userId: string; place: number; request?: string }
  /** The run was accepted for later: it begins at `dueAt` (ms since 1970), or after the runs that its session then has. */
  | { type: 'run-scheduled'; userId: string; dueAt: number; request?: string }
  /** `request` is a digest of the server's request that the run answers. */
  | {
      type: 'run-start'
      userId: string
      agent: string
      model: string
      demo?: boolean
      request?: string
      /** What the protocol that started the run keeps with it. */
      note?: Readonly<Record<string, unknown>>
    }
  /** Another attempt continues the run: so many model steps were answered from the store. */
  | { type: 'run-resumed'; attempt: number; replayedSteps: number }
  /** What was emitted of this author's answer in this step is void: the model is asked again. */
  | { type: 'step-restart'; step: number; author?: string }
  /** Another model answers: the one before it failed with `reason`, or has `recovered`. */
  | { type: 'model-switch'; from: string; to: string; reason: ModelSwitchReason }
  /** A model call waits: for its turn under the provider's rate limit, or to be sent again. */
  | { type: 'model-wait'; model: string; waitMs: number; reason: AgentErrorCode }
  /** An MCP server is not available, so that its tools are not: they are added when it comes. */
  | { type: 'tools-missing'; server: string; problem: string }
  | { type: 'text-delta'; author: string; text: string }
  | { type: 'reasoning-delta'; author: string; text: string }
  /** Where the step's answer comes from: pages that the vendor's own search found, quotations, fetched pages. */
  | { type: 'sources'; author: string; sources: readonly Source[] }
  /** Code that the vendor's own servers ran for the answer, or what it printed. */
  | { type: 'code'; author: string; language?: string; code?: string; output?: string }
  | {
      type: 'tool-call'
      author: string
      id: string
      name: string
      args: Record<string, unknown>
      pending?: boolean
      /** The calls of nodes as tools that ask this: they wait for this answer, and for none of their own. */
      inside?: readonly string[]
    }
  | {
      type: 'tool-result'
      author: string
      id: string
      name: string
      result: unknown
      isError: boolean
      /** How long the tool took, without the wait for a person's approval. Absent when its call was in an earlier run. */
      durationMs?: number
      /** The result of a long-running tool, given with `runtime.answer`. */
      given?: boolean
    }
  | { type: 'agent-transfer'; from: string; to: string }
  | { type: 'turn-warning'; turns: number; maxTurns: number }
  /** `budget`: with the reason `budget`. */
  | { type: 'wrap-up'; reason: WrapUpReason; turns: number; maxTurns: number; budget?: BudgetState }
  /**
   * The history was changed before it was sent, or the request does not extend the one before it (`breaks`). In this
   * release `repairs` contains the breaks, too; that is deprecated: read them from `breaks`.
   */
  | {
      type: 'repair'
      model: string
      profile: string
      repairs: readonly RunRepair[]
      breaks?: readonly RunRepair[]
    }
  | { type: 'history-cut'; cut: HistoryCut }
  /** `callId`: the call that ADK wants confirmed, where the request is a call of its own. */
  | {
      type: 'approval-request'
      id: string
      name: string
      args: Record<string, unknown>
      reason?: string
      callId?: string
    }
  /** `response`: what a confirmation of ADK's was answered with, where that is more than a yes or a no. */
  | {
      type: 'approval-answer'
      id: string
      name: string
      answer: ApprovalOutcome
      callId?: string
      response?: CallResponse
    }
  /**
   * The process of a call ended after the call was started: nobody knows whether it took effect. With `asks`, the run
   * waits for a person's word; with `answer`, that word was given.
   */
  | {
      type: 'tool-unknown'
      author: string
      id: string
      name: string
      args: Record<string, unknown>
      idempotencyKey: string
      policy: OnUnknown
      asks?: boolean
      /** With `asks`: `happened` needs the result of the call, because a node of a workflow uses it. */
      needsResult?: boolean
      /** With `needsResult`: the JSON schema of the result, if there is one. */
      resultSchema?: Readonly<Record<string, unknown>>
      answer?: OutcomeAnswer
      /** With the answer `happened`: what the call returned, as far as the person has said it. */
      result?: unknown
      /** With `asks` or `answer`: how often this call had been executed by then. An answer says nothing about later ones. */
      executions?: number
    }
  /** `step` is the number of the request in `store.runs`. */
  | { type: 'usage'; author: string; model: string; usage: RunUsage; step?: number }
  | { type: 'error'; error: AgentError | AgentErrorJson }
  | {
      type: 'run-finish'
      finishReason: RunFinishReason
      /** Everything that the last speaking author said in the run, in order. */
      text: string
      /** What the last step said. */
      lastText?: string
      /** The last step as data, where its agent or the run has an `outputSchema`. */
      output?: unknown
      turns: number
      delegations: number
      usage: RunUsage
    }

export type RunEventType = RunEventBody['type']
