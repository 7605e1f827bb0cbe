/** What the slash commands do. */

import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { withoutBreaks } from '../../base/prefix-break.js'
import { AgentError } from '../../errors.js'
import { headerLine, messageLine } from '../../formats/session-lines.js'
import type { InspectedStep, RunInspection } from '../../observe/inspect.js'
import { toChatMessages } from '../../runtime/chat-view.js'
import type { ChatPart } from '../../session/chat-message.js'
import type { SessionKey, StoredMessage } from '../../session/message.js'
import { messagePages } from '../../session/session-pages.js'
import type { SessionStore } from '../../session/session-store.js'
import { startsTurn } from '../../session/turn.js'
import { fromMessages } from '../../transcript/from-messages.js'
import type { MediaPart } from '../../transcript/item.js'
import { stepTitle } from '../../transcript/repair-words.js'
import { toMarkdown } from '../../transcript/to-markdown.js'
import { plainLine } from '../plain-text.js'
import { ago, count } from '../wording.js'
import type { ChatSession, ChatUi } from './chat-session.js'
import { type CommandName, helpLines, unusedSessionName } from './commands.js'
import { formatBytes, formatCost, formatCount } from './format.js'
import { type Choice, modelChoices } from './model-choices.js'

/** Runs a command; errors are shown in the chat. */
export async function runCommand(
  chat: ChatSession,
  ui: ChatUi,
  name: CommandName,
  argument: string,
): Promise<void> {
  try {
    await ACTIONS[name](chat, ui, argument)
  } catch (error) {
    chat.fail(error)
  }
}

type Action = (chat: ChatSession, ui: ChatUi, argument: string) => void | Promise<void>

const ACTIONS: Readonly<Record<CommandName, Action>> = {
  help: chat => chat.dispatch({ type: 'panel', title: 'Help', lines: helpLines() }),
  model: chooseModel,
  sessions: chooseSession,
  new: newSession,
  inspect,
  reasoning: chat => {
    chat.dispatch({ type: 'toggle-reasoning' })
    chat.notice(chat.state.showReasoning ? 'reasoning is shown' : 'reasoning is folded')
  },
  budget: goOn,
  export: exportChat,
  save: saveMedia,
  quit: (_chat, ui) => ui.leave(),
}

async function chooseModel(chat: ChatSession, ui: ChatUi, argument: string): Promise<void> {
  const { registry, opened, state } = chat
  const ask = async () => {
    const choices = modelChoices(registry, opened.loaded, state.model)
    return ui.choose('Choose a model', await ui.wait('asking the providers for their models…', choices))
  }
  const reference = argument || (await ask())
  if (reference === undefined) return
  await checkKey(chat, reference)
  chat.switchModel(reference)
  const when = chat.busy ? 'from the next message on' : 'from here on'
  chat.notice(`model: ${chat.state.model}, ${when}`)
}

/** A key cannot be set while the program runs, so a missing one is reported now, not with the next message. */
async function checkKey({ registry, opened }: ChatSession, reference: string): Promise<void> {
  const { provider } = registry.resolve(reference)
  const { listProviders } = await import('../../runtime/models.js')
  const { config, env } = opened.loaded
  const providers = config.providers as NonNullable<Parameters<typeof listProviders>[0]>['providers']
  const found = listProviders({ providers, env }).find(each => each.provider === provider.id)
  if (found?.keyVariable === undefined || found.keyPresent) return
  throw new AgentError(
    'provider-auth',
    `There is no API key for ${reference}. Leave, set ${found.keyVariable}, and open this session again.`,
  )
}

async function chooseSession(chat: ChatSession, ui: ChatUi): Promise<void> {
  refuseWhileBusy(chat)
  const { appName, userId } = chat.key
  const { sessions } = await chat.opened.runtime.store.listSessions({ appName, userId, limit: 200 })
  if (sessions.length === 0) {
    chat.notice('there are no sessions yet: this one is kept with its first message')
    return
  }
  const now = Date.now()
  const choices = sessions.map(({ key, totalMessages, updatedAt, title, preview }): Choice => {
    const facts = [ago(updatedAt, now), count(totalMessages, 'message'), plainLine(title ?? preview ?? '')]
    const here = key.sessionId === chat.state.sessionId ? ['here'] : []
    return {
      value: key.sessionId,
      label: plainLine(key.sessionId),
      description: [...here, ...facts.filter(fact => fact !== '')].join(' · '),
    }
  })
  const chosen = await ui.choose('Choose a session', choices)
  if (chosen !== undefined && chosen !== chat.state.sessionId) await chat.open(chosen)
}

async function newSession(chat: ChatSession): Promise<void> {
  refuseWhileBusy(chat)
  await chat.open(await unusedSessionName(chat.opened.runtime.store, chat.key))
  chat.notice(`new session: ${chat.state.sessionId}`)
}

function refuseWhileBusy(chat: ChatSession): void {
  if (chat.busy) {
    throw new AgentError('invalid-argument', 'A run is in progress. Stop it with Ctrl-C first.')
  }
}

async function inspect(chat: ChatSession): Promise<void> {
  const { runId } = chat.state
  const found = runId === undefined ? undefined : await chat.opened.runtime.inspect(runId)
  if (!found) {
    chat.notice('there is no run to inspect yet: send a message first')
    return
  }
  chat.dispatch({ type: 'panel', title: 'What the model was sent', lines: inspectLines(found) })
}

/** Continues the last run, which ended at its budget, with another one. */
async function goOn(chat: ChatSession, _ui: ChatUi, argument: string): Promise<void> {
  refuseWhileBusy(chat)
  const perRunUsd = Number(argument.replace(/^\$/, '') || Number.NaN)
  if (!(perRunUsd > 0 && Number.isFinite(perRunUsd)))
    throw new AgentError('invalid-argument', 'Give an amount in dollars, such as /budget 0.50.')
  await chat.goOn(perRunUsd)
}

async function exportChat(chat: ChatSession, _ui: ChatUi, argument: string): Promise<void> {
  if (!chat.exists)
    throw new AgentError('invalid-argument', 'There is nothing to export yet: send a message first.')
  const file = argument || `${chat.state.sessionId.replace(/[^\w.-]+/g, '_')}.jsonl`
  const { path, messages } = await exportSession(chat.opened.runtime.store, chat.key, resolve(chat.cwd, file))
  chat.notice(`${count(messages, 'message')} written to ${path}`)
}

/**
 * Writes a session to a file, as `lango sessions import` reads it or, for `.md`, as text for people. Returns the
 * path and the number of messages. A file that exists is not overwritten.
 */
async function exportSession(
  store: SessionStore,
  key: SessionKey,
  path: string,
): Promise<{ path: string; messages: number }> {
  const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  if (!session) throw new AgentError('session-not-found', `Session "${key.sessionId}" no longer exists.`)
  const isText = path.endsWith('.md')
  const handle = await openNew(path)
  try {
    if (!isText) await handle.appendFile(headerLine(session))
    let messages = 0
    let rest: readonly StoredMessage[] = []
    for await (const page of messagePages(store, key, { beforeSeq: session.totalMessages + 1 })) {
      if (isText) {
        // A result is shown with its call, so a turn is written when it is complete.
        const read = [...rest, ...page]
        const lastTurn = Math.max(0, read.findLastIndex(startsTurn))
        await handle.appendFile(markdownOf(read.slice(0, lastTurn)))
        rest = read.slice(lastTurn)
      } else await handle.appendFile(page.map(messageLine).join(''))
      messages += page.length
    }
    await handle.appendFile(markdownOf(rest))
    return { path, messages }
  } finally {
    await handle.close()
  }
}

/** Writes the newest picture or file of the session. A file that exists is not overwritten. */
async function saveMedia(chat: ChatSession, _ui: ChatUi, argument: string): Promise<void> {
  const { store } = chat.opened.runtime
  let newest: MediaPart | undefined
  if (chat.exists)
    for await (const page of messagePages(store, chat.key))
      newest =
        toChatMessages(page, () => undefined)
          .flatMap(({ parts }) => parts.flatMap(mediaOf))
          .findLast(({ data }) => data !== undefined) ?? newest
  if (newest?.data === undefined)
    throw new AgentError('invalid-argument', 'There is no picture or file in this session.')
  const path = resolve(chat.cwd, argument || fileName(newest, chat.state.sessionId))
  const handle = await openNew(path)
  try {
    const data = Buffer.from(newest.data, 'base64')
    await handle.appendFile(data)
    chat.notice(`${newest.mimeType}, ${formatBytes(data.length)}, written to ${path}`)
  } finally {
    await handle.close()
  }
}

function mediaOf(part: ChatPart): MediaPart[] {
  if (part.type === 'tool-result') return part.media ?? []
  return part.type === 'media' ? [part] : []
}

/** A name that someone else gave is no path. */
function fileName({ name, mimeType }: MediaPart, sessionId: string): string {
  const plain = (name ?? '')
    .replace(/^.*[/\\]/, '')
    .replace(/[^\w.-]+/g, '_')
    .replace(/^\.+/, '')
  if (plain !== '') return plain
  const ending = /^[\w-]+\/([a-z0-9]+)/.exec(mimeType)?.[1] ?? 'bin'
  return `${sessionId.replace(/[^\w.-]+/g, '_')}.${ending === 'jpeg' ? 'jpg' : ending}`
}

async function openNew(path: string) {
  try {
    return await open(path, 'wx', 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why =
      code === 'EEXIST'
        ? 'the file already exists'
        : code === 'ENOENT'
          ? 'its folder does not exist'
          : (code ?? 'it cannot be opened')
    throw new AgentError('invalid-argument', `Cannot write ${path}: ${why}. Name another file.`, {
      cause: error,
    })
  }
}

function markdownOf(messages: readonly StoredMessage[]): string {
  return toMarkdown(fromMessages(toChatMessages(messages, () => undefined)))
}

/** The lines of `/inspect`: per step stored → cut → repaired → sent. */
export function inspectLines(run: RunInspection): string[] {
  const lines = [
    [`run ${run.runId}`, run.agent, run.finishReason ?? 'unfinished'].filter(Boolean).join(' · '),
    ...(run.error ? [`failed: ${run.error.message}`] : []),
  ]
  if (run.steps.length === 0) return [...lines, '', 'Nothing was sent to a model in this run.']
  const shown = run.steps.slice(-SHOWN_STEPS)
  if (shown.length < run.steps.length) {
    lines.push('', `… ${count(run.steps.length - shown.length, 'earlier step')}`)
  }
  for (const step of shown) lines.push('', ...stepLines(step))
  const { usage } = run.total
  const cost = usage.cost === undefined || usage.totalTokens === 0 ? '' : ` · ${formatCost(usage.cost)}`
  lines.push(
    '',
    `total: ${count(run.total.requests, 'request')} · ${formatBytes(run.total.bytes)} sent · ` +
      `${count(run.total.repairs, 'repair')} · ${formatCount(usage.inputTokens)} in, ` +
      `${formatCount(usage.outputTokens)} out${cost}`,
  )
  return lines
}

const SHOWN_STEPS = 10
const SHOWN_REPAIRS = 12

function stepLines(step: InspectedStep): string[] {
  const { stored, history, sent, usage } = step
  const lines = [`step ${step.step} · ${step.model} · rules of ${step.profile}`]
  if (stored)
    lines.push(row('stored', `${count(stored.messages, 'message')}, ${formatCount(stored.tokens)} tokens`))
  if (step.cuts.length === 0) lines.push(row('cut', 'nothing'))
  for (const cut of step.cuts) {
    const limit = cutLimit(cut)
    const shortened = cut.shortened.map(
      ({ name, fromTokens, toTokens }) =>
        `${name}'s output shortened from ${formatCount(fromTokens)} to ${formatCount(toTokens)} tokens`,
    )
    const left =
      cut.messages > 0
        ? [`${count(cut.messages, 'message')}, ${formatCount(cut.tokens)} tokens, ${limit}`]
        : []
    lines.push(row('cut', [...left, ...shortened].join('; ')))
  }
  if (history) {
    lines.push(row('history', `${count(history.messages, 'message')}, ${formatCount(history.tokens)} tokens`))
  }
  lines.push(...repairLines(withoutBreaks(step.repairs)))
  for (const { detail } of step.breaks) lines.push(row('break', detail))
  const mapped = Object.keys(step.mappedIds).length
  if (mapped > 0) lines.push(row('ids', `${count(mapped, 'call id')} rewritten for the wire`))
  lines.push(row('sent', `${count(sent.messages, 'message')}, ${formatBytes(sent.bytes)}`))
  if (usage) {
    const cached = usage.cachedInputTokens > 0 ? ` (${formatCount(usage.cachedInputTokens)} cached)` : ''
    const counted = `${formatCount(usage.inputTokens)} in${cached}, ${formatCount(usage.outputTokens)} out`
    lines.push(row('counted', usage.cost === undefined ? counted : `${counted}, ${formatCost(usage.cost)}`))
  }
  return lines
}

function repairLines(repairs: InspectedStep['repairs']): string[] {
  if (repairs.length === 0) return [row('repaired', 'nothing')]
  const more = repairs.length - SHOWN_REPAIRS
  return [
    ...repairs
      .slice(0, SHOWN_REPAIRS)
      .map(({ step, detail }, index) => row(index === 0 ? 'repaired' : '', `${stepTitle(step)}: ${detail}`)),
    ...(more > 0 ? [row('', `… ${count(more, 'more repair')}`)] : []),
  ]
}

function cutLimit({
  reason,
  budgetTokens,
  maxMessages,
  keptMessages,
}: InspectedStep['cuts'][number]): string {
  if (reason === 'message-limit') return `to keep ${count(maxMessages ?? keptMessages, 'message')}`
  return budgetTokens === undefined ? 'by the token budget' : `to fit ${formatCount(budgetTokens)} tokens`
}

function row(name: string, text: string): string {
  return `  ${name.padEnd(9)} ${text}`
}
