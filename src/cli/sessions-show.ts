import { messageLine } from '../formats/session-lines.js'
import type { Session, StoredMessage } from '../session/message.js'
import { type ToolCall, toolCallKind } from '../session/message.js'
import type { Flags } from './command.js'
import { called, givenFlags, quoted } from './next-command.js'
import { findSession, withStore } from './open-command-store.js'
import { note, print, printJson, type Styles, stylesOf } from './output.js'
import { plainLine, plainText } from './plain-text.js'
import { fitText } from './text-width.js'
import { wholeNumber } from './whole-number.js'
import { count, localTime } from './wording.js'

/** `lango sessions show`. */
export async function showSession([id = '']: readonly string[], flags: Flags): Promise<number> {
  const limit = wholeNumber('--limit', flags.limit, 1) ?? 20
  const before = wholeNumber('--before', flags.before, 1)
  return withStore(flags, async opened => {
    const key = await findSession(opened, id, flags.user)
    const session = await opened.store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
    const beforeSeq = before ?? Number.MAX_SAFE_INTEGER
    const messages = await opened.store.readMessages(key, { beforeSeq, limit })
    if (flags.raw) await print(messages.map(messageLine).join(''))
    else if (flags.json) await printJson({ ...session, messages })
    else if (session) await show({ ...session, messages }, flags)
    return 0
  })
}

async function show(session: Session, flags: Flags): Promise<void> {
  const styles = stylesOf(process.stdout)
  const { key, messages, totalMessages } = session
  const facts = [`user ${key.userId}`, `app ${key.appName}`, count(totalMessages, 'message')]
  const times = `created ${localTime(session.createdAt)}, updated ${localTime(session.updatedAt)}`
  const state = stateLines(session)
  const title = session.title === undefined ? '' : `: ${plainLine(session.title)}`
  const head = [
    styles.bold(`${plainLine(key.sessionId)}${title}`),
    styles.dim(plainLine(facts.join(' · '))),
    styles.dim(times),
    ...state,
  ]
  await print(`${head.join('\n')}\n`)
  for (const message of messages) await print(`\n${messageText(message, styles)}\n`)
  const [first] = messages
  if (first && first.seq > 1) {
    const options = givenFlags(flags, ['limit', 'user', 'app', 'store', 'config'])
    const command = `${called('sessions show')} ${quoted(key.sessionId)}${options} --before ${first.seq}`
    note(styles.dim(`\nEarlier messages: ${command}`))
  }
}

function stateLines({ state }: Session): string[] {
  const names = Object.keys(state)
  if (names.length === 0) return []
  return [`state ${fitText(plainLine(JSON.stringify(state)), SHOWN_CHARACTERS)}`]
}

const SHOWN_CHARACTERS = 300
const SHOWN_LINES = 40

/** One message for people: who, when, what was said, and which tools were called. */
export function messageText(message: StoredMessage, styles: Styles): string {
  const { seq, role, author, content, toolCalls = [], timestamp } = message
  const speaker = author === undefined || author === role ? role : `${role} ${author}`
  const head = `${styles.bold(plainLine(speaker))} ${styles.dim(`#${seq} · ${localTime(timestamp)}`)}`
  // A tool's result stands in the calls; its content repeats it.
  const isResult = toolCalls.some(call => toolCallKind(call, role) === 'response')
  const text = isResult ? '' : shortened(plainText(content))
  const calls = toolCalls.flatMap(call => callLines(call, message))
  const body = [...(text === '' ? [] : [text]), ...calls]
  return [head, ...(body.length === 0 ? [styles.dim('(no text; --raw shows what is stored)')] : body)].join(
    '\n',
  )
}

function callLines(call: ToolCall, { role }: StoredMessage): string[] {
  const kind = toolCallKind(call, role)
  const asked = `→ ${call.name} ${call.input ?? ''}`
  const answered = `← ${call.name} ${call.output ?? ''}`
  const lines = kind === 'both' ? [asked, answered] : [kind === 'call' ? asked : answered]
  return lines.map(line => fitText(plainLine(line), SHOWN_CHARACTERS))
}

function shortened(text: string): string {
  const lines = text.split('\n')
  const shown = lines.slice(0, SHOWN_LINES).join('\n')
  const cut = shown.length > SHOWN_LINES * 200 ? `${shown.slice(0, SHOWN_LINES * 200)}…` : shown
  return lines.length > SHOWN_LINES ? `${cut}\n… ${count(lines.length - SHOWN_LINES, 'more line')}` : cut
}
