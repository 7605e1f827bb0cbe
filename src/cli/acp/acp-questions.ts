/** What runs ask the person in front of the editor: whether a call may be made, and whether one took effect. */
import type {
  AgentContext,
  PermissionOption,
  RequestPermissionRequest,
  ToolCallContent,
} from '@agentclientprotocol/sdk'
import { AgentError, messageOf } from '../../errors.js'
import type { RunQuestion } from '../../run/open-questions.js'
import type { RunAnswer } from '../../tool.js'
import { OUTCOME_WORDS } from '../../transcript/item.js'
import type { AcpFolder } from './acp-folders.js'
import { callFacts, type RunUpdates } from './acp-updates.js'

export interface AcpQuestionParts {
  folder: AcpFolder
  client: AgentContext
  sessionId: string
  /** Aborted when the editor is gone: what is open stays open in the store. */
  signal: AbortSignal
  allowsAll: () => boolean
  /** A file as the editor has it. */
  readFile: (path: string) => Promise<string | undefined>
}

export class AcpQuestions {
  readonly #parts: AcpQuestionParts
  /** By the id of the call, until the run has the answer: a run that is resumed meanwhile asks once more. */
  readonly #asking = new Map<string, AbortController>()

  constructor(parts: AcpQuestionParts) {
    this.#parts = parts
  }

  /** Asks what is open and was not asked; what was answered elsewhere is no longer asked. */
  ask(runId: string, open: readonly RunQuestion[], updates: RunUpdates): void {
    for (const [callId, asked] of this.#asking) {
      if (open.some(one => one.callId === callId)) continue
      asked.abort()
      this.#asking.delete(callId)
    }
    for (const question of open.filter(isAskable)) {
      if (this.#asking.has(question.callId)) continue
      const asked = new AbortController()
      this.#asking.set(question.callId, asked)
      void this.#decide(runId, question, updates, asked.signal).catch(error =>
        this.#parts.folder.logger.warn('A question was not answered', { runId, error: messageOf(error) }),
      )
    }
  }

  /** Asks nothing more. */
  close(): void {
    for (const asked of this.#asking.values()) asked.abort()
    this.#asking.clear()
  }

  async #decide(
    runId: string,
    question: RunQuestion,
    updates: RunUpdates,
    signal: AbortSignal,
  ): Promise<void> {
    const { folder, signal: gone, allowsAll } = this.#parts
    const isAllowed = question.asks === 'approval' && allowsAll()
    const said = isAllowed ? 'once' : await this.#permission(question, updates, signal)
    if (said === undefined || signal.aborted || gone.aborted) return
    if (said === 'cancelled') await folder.runtime.stop(runId).catch(ignoreUnknown)
    else await folder.runtime.answer(runId, question.callId, said).catch(ignoreUnknown)
  }

  async #permission(
    question: RunQuestion,
    updates: RunUpdates,
    signal: AbortSignal,
  ): Promise<RunAnswer | 'cancelled' | undefined> {
    const { client, folder, signal: gone } = this.#parts
    const options = question.asks === 'approval' ? APPROVALS : OUTCOMES
    const request = await this.#request(question, updates)
    try {
      const cancel = { cancellationSignal: signal, stopWaitingOnCancel: true }
      const { outcome } = await client.request('session/request_permission', request, cancel)
      if (outcome.outcome === 'cancelled') return 'cancelled'
      const chosen = options.find(({ optionId }) => optionId === outcome.optionId)
      if (chosen) return chosen.optionId as RunAnswer
      throw new AgentError('invalid-argument', `There is no option "${outcome.optionId}".`)
    } catch (error) {
      if (signal.aborted || gone.aborted) return undefined
      folder.logger.warn('The editor refused a question', { tool: question.tool, error: messageOf(error) })
      return question.asks === 'approval' ? 'no' : 'leave'
    }
  }

  async #request(question: RunQuestion, updates: RunUpdates): Promise<RequestPermissionRequest> {
    const { tool, args, asks, callId, reason } = question
    const { folder, sessionId } = this.#parts
    const call = updates.call(callId) ?? callFacts(callId, tool, args, folder.workspace)
    const title = asks === 'outcome' ? `${call.title}: it is not known whether it took effect` : call.title
    const words: ToolCallContent[] =
      reason === undefined ? [] : [{ type: 'content', content: { type: 'text', text: reason } }]
    const content = [...words, ...(await this.#withOldText(call.content ?? []))]
    const options = asks === 'approval' ? APPROVALS : OUTCOMES
    return { sessionId, toolCall: { ...call, title, status: 'pending', content }, options: [...options] }
  }

  /** A file that is written whole is compared with what the editor has of it. */
  async #withOldText(content: readonly ToolCallContent[]): Promise<readonly ToolCallContent[]> {
    const [diff] = content
    if (diff?.type !== 'diff' || diff.oldText !== null) return content
    return [{ ...diff, oldText: (await this.#parts.readFile(diff.path)) ?? null }]
  }
}

const APPROVALS: readonly PermissionOption[] = [
  { optionId: 'once', name: 'Allow once', kind: 'allow_once' },
  { optionId: 'always', name: 'Always allow in this session', kind: 'allow_always' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
]

const OUTCOMES: readonly PermissionOption[] = [
  { optionId: 'happened', name: OUTCOME_WORDS.happened, kind: 'allow_always' },
  { optionId: 'run', name: OUTCOME_WORDS.run, kind: 'allow_once' },
  { optionId: 'leave', name: OUTCOME_WORDS.leave, kind: 'reject_once' },
]

/** Whether it can be answered by choosing. */
export function isAskable({ asks }: RunQuestion): boolean {
  return asks !== 'result'
}

/** Somebody else was faster, or the run has ended. */
export function ignoreUnknown(error: unknown): void {
  if (!(error instanceof AgentError && error.code === 'run-not-found')) throw error
}
