/** The chat without a terminal: a line in is a message, its answer goes out as plain text, the rest to stderr. */
import { createInterface } from 'node:readline'
import type { ApprovalAnswer, OutcomeAnswer } from '../../tool.js'
import type { ToolStatus } from '../../transcript/item.js'
import { plainLine, plainText } from '../plain-text.js'
import type { ApprovalQuestion, CallFacts, ChatSession, ChatUi } from './chat-session.js'
import { readLine } from './commands.js'
import type { Choice } from './model-choices.js'
import { runCommand } from './run-command.js'

/** Reads messages until the input ends. Returns 1 when a run has failed. */
export async function chatInPlainText(chat: ChatSession, begin: () => Promise<void>): Promise<number> {
  const ui = new PlainUi(chat)
  const stop = () => (chat.busy ? chat.stop() : ui.leave())
  process.on('SIGINT', stop)
  try {
    for (const line of chat.state.header.slice(1)) process.stderr.write(`${line}\n`)
    await begin()
    const lines = createInterface({ input: process.stdin, terminal: false })
    ui.onLeave = () => lines.close()
    for await (const line of lines) {
      await ui.take(line)
      if (ui.hasLeft) break
    }
    return ui.hasFailed ? 1 : 0
  } finally {
    process.off('SIGINT', stop)
  }
}

class PlainUi implements ChatUi {
  hasLeft = false
  hasFailed = false
  onLeave: () => void = () => {}
  readonly #chat: ChatSession
  /** The id of the newest item that was written. */
  #written = 0

  constructor(chat: ChatSession) {
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
      if (item.kind === 'text') process.stdout.write(`${plainText(item.text).trimEnd()}\n`)
      else if (item.kind === 'panel') {
        for (const line of [item.title, ...item.lines]) process.stdout.write(`${plainText(line)}\n`)
      } else if (item.kind === 'notice') process.stderr.write(`${plainLine(item.text)}\n`)
      else if (item.kind === 'tool')
        process.stderr.write(`${plainLine(item.name)}: ${statusText(item.status)}\n`)
      if (item.kind === 'notice' && item.tone === 'error') this.hasFailed = true
    }
  }

  async askApproval({ name }: ApprovalQuestion): Promise<ApprovalAnswer> {
    process.stderr.write(`${plainLine(name)} needs approval, and there is no terminal to ask: refused\n`)
    return 'no'
  }

  async askOutcome({ name }: CallFacts): Promise<OutcomeAnswer> {
    const words = `it is not known whether ${plainLine(name)} took effect, and there is no terminal to ask: it stays unknown`
    process.stderr.write(`${words}\n`)
    return 'leave'
  }

  wait<Result>(_words: string, work: Promise<Result>): Promise<Result> {
    return work
  }

  async choose(_title: string, choices: readonly Choice[]): Promise<undefined> {
    for (const { value, description } of choices) {
      process.stdout.write(`${plainLine(value)}${description ? `  ${plainLine(description)}` : ''}\n`)
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
