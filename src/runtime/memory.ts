/** Memory of a runtime: what keeps it beside the runs, the tool `recall`, and ADK's memory service over it. */

import type { BaseMemoryService } from '../adk/sdk.js'
import type { Logger } from '../logger.js'
import { indexSession, readableText, turnStart } from '../memory/index-session.js'
import { MemoryKeeper } from '../memory/memory-keeper.js'
import { modelObserver, type Observer, withTerms } from '../memory/observer.js'
import { type RecalledMessage, recall } from '../memory/recall.js'
import { recallTool } from '../memory/recall-tool.js'
import type { Provider } from '../provider/provider.js'
import type { ProviderRegistry } from '../provider/provider-registry.js'
import type { RunEvent } from '../run/run-event.js'
import { type RunScope, runScope } from '../run/run-scope.js'
import { effectiveLimits, OBSERVATIONAL_BUDGET_TOKENS } from '../session/budget.js'
import type { Session, SessionKey } from '../session/message.js'
import type { SessionMemory, StoredObservation } from '../session/session-memory.js'
import type { SessionStore } from '../session/session-store.js'
import type { Tool } from '../tool.js'
import type { CheckedOptions, MemoryOptions } from './options.js'

export interface RuntimeMemory {
  keeper: MemoryKeeper
  /** Absent when agents have no recall. */
  tool: Tool | undefined
  /** A session was loaded for a run. */
  onLoad(session: Session): void
  onEvent(event: RunEvent): void
}

/** The options of memory, or `undefined` when it is off. */
export function memoryOptions({ history }: CheckedOptions): MemoryOptions | undefined {
  return history?.memory ?? (history?.observationalMemory ? {} : undefined)
}

/**
 * A person's own words in place of a note: a new one with the same source. `undefined` when there is no such note, or it
 * was replaced or forgotten meanwhile.
 */
export async function editNote(
  memory: SessionMemory,
  key: SessionKey,
  number: number,
  text: string,
): Promise<StoredObservation | undefined> {
  const [found] = await memory.readObservations(key, { numbers: [number], current: true })
  if (!found) return undefined
  const { kind, priority, time, fromSeq, toSeq } = found
  const edited = withTerms({ text, kind, priority, time, fromSeq, toSeq, origin: 'person' })
  return (await memory.observe(key, { supersedes: [number], observations: [edited] }))?.[0]
}

/** The budget as it was configured, or its default. */
export function budgetOf({ history }: CheckedOptions): number | 'off' {
  const budget = history?.maxMessageTokenBudget
  if (budget) return budget
  return history?.observationalMemory ? OBSERVATIONAL_BUDGET_TOKENS : 0
}

interface MemoryParts {
  options: CheckedOptions
  registry: ProviderRegistry
  store: SessionStore
  logger: Logger
  /** The provider, with its calls reported to those who watch them. */
  watch(provider: Provider): Provider
  /** The same, with its calls held to the budget of the current run. */
  pay: (provider: Provider) => Promise<Provider>
}

export function createMemory(parts: MemoryParts): RuntimeMemory | undefined {
  const { options, store, logger } = parts
  const memory = memoryOptions(options)
  if (!memory) return undefined
  const { app: appName } = options
  const { scope = 'session', recall: canRecall = true } = memory
  const { budgetTokens: limit } = effectiveLimits(budgetOf(options), undefined)
  const budgetTokens = Number.isFinite(limit) ? limit : OBSERVATIONAL_BUDGET_TOKENS
  const shared = { store, budgetTokens }
  const keeper = new MemoryKeeper({
    ...{ ...shared, logger, canRecall, observer: observerOf(parts, memory) },
    indexesAtOnce: scope === 'user',
    runId: () => runScope.getStore()?.runId,
  })
  const keys = new Map<string, { key: SessionKey; scope: RunScope }>()
  return {
    keeper,
    tool: canRecall ? recallTool({ ...shared, appName, scope }) : undefined,
    onLoad({ key }) {
      const scope = runScope.getStore()
      if (scope === undefined || key.appName !== appName) return
      keys.set(scope.runId, { key, scope })
      keeper.open(key)
    },
    onEvent({ type, runId }) {
      const run = type === 'run-finish' ? keys.get(runId) : undefined
      if (!run) return
      keys.delete(runId)
      // The observer draws from the budget of the run.
      runScope.run(run.scope, () => keeper.attend(run.key))
    },
  }
}

function observerOf(
  { registry, watch, pay }: MemoryParts,
  { observer }: MemoryOptions,
): Observer | undefined {
  if (observer === undefined) return undefined
  const { provider, model } = registry.resolve(observer)
  const free = modelObserver(watch(provider), model, observer)
  const paid = async () => modelObserver(await pay(provider), model, observer)
  const current = async () => (runScope.getStore()?.budget ? paid() : free)
  return {
    observe: async (messages, signal) => (await current()).observe(messages, signal),
    reflect: async (observations, signal) => {
      const { reflect } = await current()
      return reflect ? reflect(observations, signal) : { lines: [], refused: 0 }
    },
  }
}

/**
 * ADK's memory service over the store, for `LOAD_MEMORY` and `PRELOAD_MEMORY`. With memory on it searches what `recall`
 * searches; with memory off, the user's sessions that were added by `addSessionToMemory`.
 */
export function memoryServiceOf(store: SessionStore, memory: MemoryOptions | undefined): BaseMemoryService {
  return {
    addSessionToMemory: async ({ appName, userId, id }) => {
      await indexSession(store, { appName, userId, sessionId: id })
    },
    searchMemory: async ({ appName, userId, query }) => {
      const run = runScope.getStore()
      if (memory && run) await indexSession(store, run.key)
      const isSession = memory !== undefined && memory.scope !== 'user'
      const scope = { appName, userId, ...(isSession ? { sessionId: run?.key.sessionId ?? '-' } : {}) }
      const shown = memory &&
        run && { sessionId: run.key.sessionId, fromSeq: await turnStart(store, run.key) }
      const { messages, observations } = await recall(store.memory, scope, { words: query, shown })
      return { memories: [...observations.map(noteEntry), ...messages.map(messageEntry)] }
    },
  }
}

type MemoryEntry = Awaited<ReturnType<BaseMemoryService['searchMemory']>>['memories'][number]

function noteEntry({ text, time, fromSeq, toSeq }: StoredObservation): MemoryEntry {
  const source = fromSeq === toSeq ? `message ${fromSeq}` : `messages ${fromSeq}–${toSeq}`
  return entryOf('memory', `${text} (noted from ${source})`, time)
}

function messageEntry(message: RecalledMessage): MemoryEntry {
  return entryOf(message.author ?? message.role, readableText(message), message.timestamp)
}

function entryOf(author: string, text: string, time: number): MemoryEntry {
  const role = author === 'user' ? 'user' : 'model'
  return { content: { role, parts: [{ text }] }, author, timestamp: new Date(time).toISOString() }
}
