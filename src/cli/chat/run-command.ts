/** What the slash commands do. */
import { AgentError } from '../../errors.js'
import { plainLine } from '../plain-text.js'
import { ago, count } from '../wording.js'
import type { ChatSession, ChatUi } from './chat-session.js'
import { type CommandName, helpLines } from './commands.js'
import { exportSession } from './export-session.js'
import { inspectLines } from './inspect-text.js'
import { type Choice, modelChoices } from './model-choices.js'
import { unusedSessionName } from './session-name.js'

/** Runs a command; what goes wrong is said in the chat. */
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
  export: exportChat,
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

/** A key cannot be set in a program that runs, so it is missed now and not when the next message is sent. */
async function checkKey({ registry, opened }: ChatSession, reference: string): Promise<void> {
  const { provider } = registry.resolve(reference)
  const { listProviders } = await import('../../runtime/models.js')
  const { config, env } = opened.loaded
  const providers = config.providers as NonNullable<Parameters<typeof listProviders>[0]>['providers']
  const found = listProviders({ providers, env }).find(each => each.provider === provider.id)
  if (found?.keyVariable === undefined || found.keyPresent) return
  throw new AgentError(
    'provider-auth',
    `There is no key for ${reference}. Leave, set ${found.keyVariable}, and come back to this session.`,
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
    throw new AgentError('invalid-argument', 'An answer is being given. Stop it with Ctrl-C first.')
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

async function exportChat(chat: ChatSession, _ui: ChatUi, argument: string): Promise<void> {
  if (!chat.exists)
    throw new AgentError('invalid-argument', 'There is nothing to export yet: send a message first.')
  const file = argument || `${chat.state.sessionId.replace(/[^\w.-]+/g, '_')}.jsonl`
  const { path, messages } = await exportSession(chat.opened.runtime.store, chat.key, file)
  chat.notice(`${count(messages, 'message')} written to ${path}`)
}
