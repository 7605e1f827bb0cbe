/** The chat line by line: a line in is a message, its answer goes out as plain text, the rest to stderr. */

import { createInterface, type Interface } from 'node:readline'
import type { ApprovalAnswer, OutcomeAnswer } from '../../tool.js'
import type { ToolStatus } from '../../transcript/item.js'
import type { Io } from '../io.js'
import { fitText, plainLine, plainText } from '../plain-text.js'
import type { ApprovalQuestion, CallFacts, ChatSession, ChatUi } from './chat-session.js'
import { readLine } from './commands.js'
import type { Choice } from './model-choices.js'
import { runCommand } from './run-command.js'

/** Reads messages until the input ends. Returns 1 when a run has failed. `asks`: a person types them on a terminal. */
export async function chatInPlainText(
  io: Io,
  chat: ChatSession,
  begin: () => Promise<void>,
  { asks = false }: { asks?: boolean } = {},
): Promise<number> {
  const ui = new PlainUi(io, chat)
  const stop = () => (chat.busy ? chat.stop() : ui.leave())
  io.signals.on('SIGINT', stop)
  try {
    for (const line of chat.state.header.slice(asks ? 0 : 1)) io.stderr.write(`${line}\n`)
    await begin()
    const input = io.stdin
    const lines = asks
      ? createInterface({ input, output: io.stderr, prompt: '> ' })
      : createInterface({ input, terminal: false })
    ui.onLeave = () => lines.close()
    if (asks) ui.person = lines.on('SIGINT', stop)
    ui.person?.prompt()
    for await (const line of lines) {
      await ui.take(line)
      if (ui.hasLeft) break
      ui.person?.prompt()
    }
    return ui.hasFailed ? 1 : 0
  } finally {
    io.signals.off('SIGINT', stop)
  }
}

/** Of the arguments of a call. */
const MOST_SHOWN = 4000

class PlainUi implements ChatUi {
  hasLeft = false
  hasFailed = false
  onLeave: () => void = () => {}
  /** Absent in a pipe, where nobody can be asked. */
  person: Interface | undefined
  readonly #io: Io
  readonly #chat: ChatSession
  /** The id of the newest item that was written. */
  #written = 0

  constructor(io: Io, chat: ChatSession) {
    this.#io = io
    this.#chat = chat
    chat.connect(this)
  }

  async take(text: string): Promise<void> {
    const line = readLine(text)
    if (line.kind === 'command') await runCommand(this.#chat, this, line.name, line.argument)
    else if (line.kind === 'message') await this.#chat.send(line.text)
    else if (line.kind === 'unknown-command') {
      this.#chat.fail(`There is no command /${line.word}. /help lists the commands.`)
    }
    this.writeNew()
  }

  /** Writes the items that are new since the last call: answers to stdout, everything else to stderr. */
  writeNew(): void {
    for (const item of this.#chat.state.items) {
      if (item.id <= this.#written) continue
      this.#written = item.id
      if (item.kind === 'text') this.#io.stdout.write(`${plainText(item.text).trimEnd()}\n`)
      else if (item.kind === 'panel') {
        for (const line of [item.title, ...item.lines]) this.#io.stdout.write(`${plainText(line)}\n`)
      } else if (item.kind === 'notice') this.#io.stderr.write(`${plainLine(item.text)}\n`)
      else if (item.kind === 'tool')
        this.#io.stderr.write(`${plainLine(item.name)}: ${statusText(item.status)}\n`)
      if (item.kind === 'notice' && item.tone === 'error') this.hasFailed = true
    }
  }

  async askApproval({ name, args, onceOnly }: ApprovalQuestion): Promise<ApprovalAnswer> {
    if (this.person) {
      const call = `${plainLine(name)} ${fitText(plainLine(JSON.stringify(args)), MOST_SHOWN)}`
      const said = await this.#ask(`Allow ${call}? [o]nce, [a]lways, [N]o: `)
      if (said.startsWith('a')) return onceOnly ? 'once' : 'always'
      return /^[oy]/.test(said) ? 'once' : 'no'
    }
    this.#io.stderr.write(`${plainLine(name)} needs approval, and there is no terminal to ask: refused\n`)
    return 'no'
  }

  async askOutcome({ name }: CallFacts): Promise<OutcomeAnswer> {
    if (this.person) {
      const question = `It is not known whether ${plainLine(name)} took effect: it [h]appened, [r]un it, [L]eave it: `
      const said = await this.#ask(question)
      if (said.startsWith('h')) return 'happened'
      return said.startsWith('r') ? 'run' : 'leave'
    }
    const words = `it is not known whether ${plainLine(name)} took effect, and there is no terminal to ask: it stays unknown`
    this.#io.stderr.write(`${words}\n`)
    return 'leave'
  }

  /** The end of the input is no answer. */
  #ask(question: string): Promise<string> {
    return new Promise(resolve => {
      const { person } = this
      person?.once('close', () => resolve(''))
      person?.question(question, line => resolve(line.trim().toLowerCase()))
    })
  }

  wait<Result>(_words: string, work: Promise<Result>): Promise<Result> {
    return work
  }

  async choose(_title: string, choices: readonly Choice[]): Promise<undefined> {
    for (const { value, description } of choices) {
      this.#io.stdout.write(`${plainLine(value)}${description ? `  ${plainLine(description)}` : ''}\n`)
    }
  }

  restore(): void {}

  sessionOpened(): void {
    // Items of the stored session are not written.
    for (const item of this.#chat.state.items) this.#written = Math.max(this.#written, item.id)
  }

  leave(): void {
    this.hasLeft = true
    this.onLeave()
  }
}

function statusText(status: ToolStatus): string {
  return status === 'unknown' ? 'outcome unknown' : status
}
