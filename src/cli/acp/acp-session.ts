/** One session of an editor: its prompts, the runs that answer them, and what they ask the person in front of it. */
import type {
  AgentContext,
  ClientCapabilities,
  ContentBlock,
  PromptResponse,
  ReadTextFileRequest,
  SessionUpdate,
  StopReason,
} from '@agentclientprotocol/sdk'
import { defined } from '../../base/defined.js'
import { isRecord } from '../../base/is-record.js'
import { AgentError, type AgentErrorJson, messageOf } from '../../errors.js'
import { OpenQuestions, type RunQuestion } from '../../run/open-questions.js'
import type { RunEvent, RunFinishReason } from '../../run/run-event.js'
import { toChatMessages } from '../../runtime/chat-view.js'
import type { SessionKey, StoredMessage } from '../../session/message.js'
import type { ModelOptions } from '../../session/model-options.js'
import type { RunSummary } from '../../session/run-store.js'
import { messagePages } from '../../session/session-pages.js'
import { fromMessages } from '../../transcript/from-messages.js'
import { questionText } from '../../transcript/questions.js'
import { count } from '../wording.js'
import type { AcpFolder } from './acp-folders.js'
import { readPrompt } from './acp-prompt.js'
import { AcpQuestions, ignoreUnknown, isAskable } from './acp-questions.js'
import { chunk, historyUpdates, RunUpdates } from './acp-updates.js'

/** `ask`: a person decides about calls that need approval. `allow`: all of them are allowed. */
export type AcpMode = 'ask' | 'allow'

export interface AcpSessionParts {
  folder: AcpFolder
  key: SessionKey
  client: AgentContext
  capabilities: ClientCapabilities
  /** The connection's. */
  signal: AbortSignal
}

/** What is chosen for the next runs. */
export interface AcpChoices {
  mode: AcpMode
  /** Absent: the agent's own. */
  model?: string | undefined
  thinking?: ModelOptions['thinking'] | undefined
}

/** How far a run was followed. */
interface Followed {
  reason: RunFinishReason
  error?: AgentError | AgentErrorJson
}

/** The most messages that are sent when a session is loaded. */
const MOST_MESSAGES = 4000

export class AcpSession {
  readonly folder: AcpFolder
  readonly key: SessionKey
  choices: AcpChoices = { mode: 'ask' }
  readonly #client: AgentContext
  readonly #capabilities: ClientCapabilities
  readonly #closed = new AbortController()
  readonly #signal: AbortSignal
  /** Runs are shown one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  /** Runs that have not ended, as far as is known here. */
  readonly #runs = new Set<string>()
  readonly #starting = new Set<AbortController>()
  readonly #questions: AcpQuestions
  /** A call that waits for a result, which the next prompt gives. */
  #awaited: { runId: string; callId: string; afterSeq: number } | undefined
  #notices: readonly string[]

  constructor({ folder, key, client, capabilities, signal }: AcpSessionParts) {
    this.folder = folder
    this.key = key
    this.#client = client
    this.#capabilities = capabilities
    this.#signal = AbortSignal.any([signal, this.#closed.signal])
    this.#notices = folder.notices
    this.#questions = new AcpQuestions({
      folder,
      client,
      sessionId: key.sessionId,
      signal: this.#signal,
      allowsAll: () => this.choices.mode === 'allow',
      readFile: path => this.readFile(path),
    })
  }

  /** Sends the stored messages, and shows the run that has not ended, if there is one, once they are sent. */
  async load({ withHistory }: { withHistory: boolean }): Promise<void> {
    const { store } = this.folder.runtime
    const [run] = await store.runs.listRuns(this.key, { limit: 1 })
    const open = run && !run.finished ? run : undefined
    if (withHistory) await this.#sendHistory(open)
    if (!open) return
    this.#runs.add(open.runId)
    // The answer to the request comes first.
    setImmediate(() => void this.#inTurn(() => this.#continueRun(open)).catch(() => {}))
  }

  /** Sends a message and shows the run that answers it. */
  async prompt(blocks: readonly ContentBlock[]): Promise<PromptResponse> {
    const message = readPrompt(blocks, this.folder.workspace)
    const awaited = this.#awaited
    this.#awaited = undefined
    const { runId, afterSeq } = awaited
      ? await this.#give(awaited, message.text)
      : { runId: await this.#start(message), afterSeq: 0 }
    const { reason, error } = await this.#inTurn(async () => {
      for (const notice of this.#notices) await this.#send(...this.#updates().notice(notice))
      this.#notices = []
      return this.#follow(runId, afterSeq)
    })
    if (reason === 'error') throw error ?? new AgentError('internal', 'The run ended with an error.')
    return { stopReason: STOP_REASONS[reason] }
  }

  /** Stops everything that works for this session. */
  async cancel(): Promise<void> {
    for (const starting of this.#starting) starting.abort()
    this.#awaited = undefined
    const stopped = [...this.#runs].map(runId => this.folder.runtime.stop(runId).catch(ignoreUnknown))
    await Promise.all(stopped)
  }

  /** Shows nothing more. Runs that were not cancelled go on. */
  close(): void {
    this.#closed.abort()
  }

  /** A file as the editor has it; `undefined` when it does not offer that, or does not have the file. */
  async readFile(path: string): Promise<string | undefined> {
    if (!this.#capabilities.fs?.readTextFile || this.#signal.aborted) return undefined
    try {
      const request: ReadTextFileRequest = { sessionId: this.key.sessionId, path }
      return (await this.#client.request('fs/read_text_file', request)).content
    } catch (error) {
      this.folder.logger.debug('The editor did not read a file', { path, error: messageOf(error) })
      return undefined
    }
  }

  async writeFile(path: string, content: string): Promise<boolean> {
    if (!this.#capabilities.fs?.writeTextFile || this.#signal.aborted) return false
    try {
      await this.#client.request('fs/write_text_file', { sessionId: this.key.sessionId, path, content })
      return true
    } catch (error) {
      throw new AgentError('internal', `The editor did not write ${path}: ${messageOf(error)}`)
    }
  }

  async #start(message: ReturnType<typeof readPrompt>): Promise<string> {
    const { sessionId, userId } = this.key
    const { model, thinking } = this.choices
    const stop = new AbortController()
    this.#starting.add(stop)
    try {
      const input = { ...message, sessionId, userId, ...defined({ model, thinking }), signal: stop.signal }
      const { runId } = await this.folder.runtime.start(input)
      this.#runs.add(runId)
      if (stop.signal.aborted) await this.folder.runtime.stop(runId).catch(ignoreUnknown)
      return runId
    } finally {
      this.#starting.delete(stop)
    }
  }

  async #give(
    { runId, callId, afterSeq }: { runId: string; callId: string; afterSeq: number },
    text: string,
  ): Promise<{ runId: string; afterSeq: number }> {
    await this.folder.runtime.answer(runId, callId, resultOf(text))
    return { runId, afterSeq }
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(work, work)
    this.#last = turn.catch(() => {})
    return turn
  }

  /** Shows a run of another process, or one that was interrupted, and asks what it asks. */
  async #continueRun({ runId }: RunSummary): Promise<void> {
    try {
      await this.folder.runtime.ready()
      const { reason, error } = await this.#follow(runId, 0)
      if (reason === 'error') await this.#say(`Error: ${error?.message ?? 'The run ended with an error.'}`)
    } catch (error) {
      this.folder.logger.warn('A run could not be followed', { runId, error: messageOf(error) })
      await this.#say(`Error: ${messageOf(error)}`).catch(() => {})
    }
  }

  /** To the end of the run, or until only the next prompt can answer what it waits for. */
  async #follow(runId: string, afterSeq: number): Promise<Followed> {
    const { runtime } = this.folder
    const updates = this.#updates()
    const questions = new OpenQuestions()
    const found: Followed = { reason: 'aborted' }
    const known = (await runtime.store.runs.findRun(runId))?.lastSeq ?? 0
    let after = afterSeq
    let isOver = false
    try {
      for (let isAnswered = true; isAnswered && !isOver; ) {
        isAnswered = false
        const untilWaiting = !questions.list.some(isAskable)
        const options = { afterSeq: after, untilWaiting, signal: this.#signal }
        for await (const events of runtime.followLists(runId, options)) {
          for (const event of events) {
            questions.add(event)
            await this.#send(...updates.of(event), ...(await this.#usage(event)))
            isOver = noteEnd(found, event)
          }
          after = events.at(-1)?.seq ?? after
          // What was asked and answered before is not asked again.
          if (after >= known) this.#questions.ask(runId, questions.list, updates)
          isAnswered = !untilWaiting && !questions.list.some(isAskable)
          if (isOver || isAnswered) break
        }
        // It waits: for answers to what is asked, or for the next prompt.
        const [awaited] = questions.list
        if (isOver || !untilWaiting || !awaited || this.#signal.aborted) continue
        if (!questions.list.some(isAskable)) return await this.#waits(runId, awaited, after)
        isAnswered = true
      }
      return found
    } finally {
      this.#questions.close()
      if (isOver) this.#runs.delete(runId)
    }
  }

  async #waits(runId: string, question: RunQuestion, afterSeq: number): Promise<Followed> {
    this.#awaited = { runId, callId: question.callId, afterSeq }
    await this.#say(`\n\nWaiting: ${questionText(question)}. Your next message is the answer.`)
    return { reason: 'waiting' }
  }

  async #sendHistory(open: RunSummary | undefined): Promise<void> {
    const { runtime, workspace } = this.folder
    const { totalMessages = 0 } = (await runtime.store.describeSession(this.key)) ?? {}
    // The events of a run that has not ended show what it wrote: its message is the last that is sent here.
    const end = open?.afterSeq === undefined ? totalMessages : open.afterSeq + 1
    const afterSeq = Math.max(0, end - MOST_MESSAGES)
    const messages: StoredMessage[] = []
    for await (const page of messagePages(runtime.store, this.key, { afterSeq, beforeSeq: end + 1 }))
      messages.push(...page)
    if (afterSeq > 0)
      await this.#send(...this.#updates().notice(`${count(afterSeq, 'earlier message')} not shown`))
    const items = fromMessages(
      toChatMessages(messages, () => undefined),
      [],
      open !== undefined,
    )
    for (const update of historyUpdates(items, workspace)) await this.#send(update)
  }

  async #usage(event: RunEvent): Promise<SessionUpdate[]> {
    if (event.type !== 'usage') return []
    const { totalTokens: used } = event.usage
    const models = await this.folder.runtime.models()
    const size = models.find(({ reference }) => reference === event.model)?.contextWindow
    return size === undefined ? [] : [{ sessionUpdate: 'usage_update', used, size }]
  }

  #updates(): RunUpdates {
    return new RunUpdates(this.folder.workspace, Boolean(this.#capabilities.session?.notices))
  }

  #say(text: string): Promise<void> {
    return this.#send(chunk('agent_message_chunk', text))
  }

  async #send(...updates: SessionUpdate[]): Promise<void> {
    const { sessionId } = this.key
    for (const update of updates) {
      if (this.#signal.aborted) return
      await this.#client.notify('session/update', { sessionId, update })
    }
  }
}

const STOP_REASONS: Readonly<Record<Exclude<RunFinishReason, 'error'>, StopReason>> = {
  stop: 'end_turn',
  waiting: 'end_turn',
  length: 'max_tokens',
  budget: 'max_tokens',
  'turn-limit': 'max_turn_requests',
  loop: 'max_turn_requests',
  aborted: 'cancelled',
}

/** Notes how the run ended; whether it has. A run that waits has not. */
function noteEnd(found: Followed, event: RunEvent): boolean {
  if (event.type === 'error') found.error = event.error
  if (event.type !== 'run-finish' || event.finishReason === 'waiting') return false
  found.reason = event.finishReason
  return true
}

/** A person's words as the result of a call: an object where they are one. */
function resultOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch {
    // Words are the result themselves.
  }
  return { result: text }
}
