/** The chat on a terminal: transcript, activity, question or input, status line. */

import {
  CombinedAutocompleteProvider,
  type Component,
  Container,
  Editor,
  isKeyRelease,
  matchesKey,
  ProcessTerminal,
  TUI,
} from '@earendil-works/pi-tui'
import type { ApprovalAnswer, CallResponse, OutcomeAnswer } from '../../tool.js'
import { questionForm } from '../../transcript/question-form.js'
import type { Io } from '../io.js'
import {
  type ApprovalQuestion,
  type CallFacts,
  type ChatSession,
  type ChatUi,
  HUNG_UP,
} from './chat-session.js'
import { COMMANDS, readLine } from './commands.js'
import { FormPrompt } from './form-prompt.js'
import { clip, Transcript } from './item-lines.js'
import { type Choice, usableProviders } from './model-choices.js'
import { approvalQuestion, CallPrompt, type CallQuestion, outcomeQuestion, Picker } from './prompts.js'

import { runCommand } from './run-command.js'
import { Activity, StatusLine } from './status-line.js'
import { createTheme, editorTheme, type Theme } from './theme.js'

/** Two presses of Ctrl-C within this time leave. */
const TWICE_MS = 2_000
/** A key this soon after another, or after the question, was meant for the text that is being typed. */
const TYPING_MS = 700
const MOST_PROMPTS = 200

/** Runs the chat until its user leaves or a signal ends it. Returns the exit code. */
export async function chatOnScreen(io: Io, chat: ChatSession, begin: () => Promise<void>): Promise<number> {
  const screen = new ChatScreen(io, chat, createTheme(io.color && !io.env.NO_COLOR))
  return screen.run(begin)
}

/** The signals that end a chat, with their exit codes. */
const ENDINGS = [
  ['SIGTERM', 143],
  ['SIGHUP', HUNG_UP],
] as const

/** No line may be wider than the terminal, whatever draws it: pi-tui would end the program. */
class ClippedContainer extends Container {
  override render(width: number): string[] {
    return super.render(width).map(line => clip(line, width))
  }
}

class ChatScreen implements ChatUi {
  readonly canAsk = true
  readonly #io: Io
  readonly #chat: ChatSession
  readonly #theme: Theme
  readonly #terminal = new ProcessTerminal()
  readonly #tui = new TUI(this.#terminal)
  readonly #below = new ClippedContainer()
  readonly #activity: Activity
  readonly #status: StatusLine
  #editor: Editor
  readonly #questions: Component[] = []
  /** The question that is on the screen. */
  #asked: Component | undefined
  #picker: Picker | undefined
  #interruptedAt = Number.NEGATIVE_INFINITY
  #typedAt = Number.NEGATIVE_INFINITY
  #askedAt = Number.NEGATIVE_INFINITY
  #hintTimer: NodeJS.Timeout | undefined
  #leave: (code?: number) => void = () => {}
  #isClosed = false

  constructor(io: Io, chat: ChatSession, theme: Theme) {
    this.#io = io
    this.#chat = chat
    this.#theme = theme
    const state = () => chat.state
    this.#activity = new Activity(state, theme, () => this.#tui.requestRender())
    this.#status = new StatusLine(state, theme)
    this.#editor = this.#makeEditor([])
    this.#tui.addChild(new Transcript(state, theme))
    this.#tui.addChild(this.#activity)
    this.#tui.addChild(this.#below)
    this.#tui.addInputListener(data => this.#listen(data))
    chat.onChange = () => this.#draw()
    chat.connect(this)
  }

  /** Shows the screen, begins, and resolves with the exit code when the user has left. */
  async run(begin: () => Promise<void>): Promise<number> {
    const left = new Promise<number>(resolve => {
      this.#leave = (code = 0) => resolve(code)
    })
    const listeners = ENDINGS.map(([signal, code]) => [signal, () => this.#leave(code)] as const)
    for (const [signal, listener] of listeners) this.#io.signals.on(signal, listener)
    // Sometimes the end of the keys is noticed before the signal.
    const hangUp = () => this.#leave(HUNG_UP)
    this.#io.stdin.on('end', hangUp)
    // A defect must not leave the terminal in a state in which nobody can read about it.
    const restore = () => this.#tui.stop()
    this.#io.signals.on('uncaughtExceptionMonitor', restore)
    this.#arrange()
    this.#tui.start()
    let code = 0
    try {
      await begin()
      // Loading takes a second: better while the first message is being typed.
      void this.#chat.opened.runtime.ready().catch(error => this.#chat.fail(error))
      code = await left
      return code
    } finally {
      for (const [signal, listener] of listeners) this.#io.signals.off(signal, listener)
      this.#io.stdin.off('end', hangUp)
      this.#io.signals.off('uncaughtExceptionMonitor', restore)
      await this.#close(code === HUNG_UP)
    }
  }

  askApproval(question: ApprovalQuestion, signal: AbortSignal): Promise<ApprovalAnswer | CallResponse> {
    const form = questionForm(question.args)
    if (!form) return this.#ask(approvalQuestion(question), signal)
    return this.#prompt<CallResponse | 'no'>(new FormPrompt(question, form, this.#theme), 'no', signal)
  }

  askOutcome(call: CallFacts, signal: AbortSignal): Promise<OutcomeAnswer> {
    return this.#ask(outcomeQuestion(call), signal)
  }

  #ask<Answer>(question: CallQuestion<Answer>, signal: AbortSignal): Promise<Answer> {
    const prompt = new CallPrompt(question, this.#theme, () => this.#terminal.rows)
    return this.#prompt(prompt, question.otherwise, signal)
  }

  #prompt<Answer>(
    prompt: Component & { onAnswer(answer: Answer): void },
    otherwise: Answer,
    signal: AbortSignal,
  ): Promise<Answer> {
    return new Promise(resolve => {
      const done = (answer: Answer) => {
        const index = this.#questions.indexOf(prompt)
        if (index >= 0) this.#questions.splice(index, 1)
        this.#arrange()
        resolve(answer)
      }
      prompt.onAnswer = done
      signal.addEventListener('abort', () => done(otherwise), { once: true })
      this.#questions.push(prompt)
      this.#arrange()
    })
  }

  async wait<Result>(words: string, work: Promise<Result>): Promise<Result> {
    this.#status.hint = words
    this.#tui.requestRender()
    try {
      return await work
    } finally {
      this.#status.hint = ''
      this.#tui.requestRender()
    }
  }

  choose(title: string, choices: readonly Choice[]): Promise<string | undefined> {
    return new Promise(resolve => {
      const picker = new Picker(title, choices, this.#theme, this.#terminal.rows)
      picker.onDone = value => {
        this.#picker = undefined
        this.#arrange()
        resolve(value)
      }
      this.#picker = picker
      this.#arrange()
    })
  }

  restore(text: string): void {
    const typed = this.#editor.getText()
    this.#editor.setText(typed === '' ? text : `${text}\n${typed}`)
    this.#tui.requestRender()
  }

  sessionOpened(prompts: readonly string[]): void {
    this.#editor = this.#makeEditor(prompts)
    this.#arrange()
  }

  leave(): void {
    this.#leave()
  }

  #draw(): void {
    // A question that ends with the chat must not start the activity line again.
    if (this.#isClosed) return
    this.#activity.update()
    this.#tui.requestRender()
  }

  /** A list takes the place of the input; a question stands above it. The first question has the keys. */
  #arrange(): void {
    const [question] = this.#questions
    if (question !== this.#asked) this.#askedAt = Date.now()
    this.#asked = question
    const parts: Component[] = this.#picker
      ? [this.#picker]
      : [...(question ? [question] : []), new Line(''), this.#editor]
    this.#below.clear()
    for (const part of [...parts, this.#status]) this.#below.addChild(part)
    this.#tui.setFocus(this.#picker ?? question ?? this.#editor)
    this.#draw()
  }

  #makeEditor(prompts: readonly string[]): Editor {
    const editor = new Editor(this.#tui, editorTheme(this.#theme), { paddingX: 1, autocompleteMaxVisible: 8 })
    for (const prompt of prompts.slice(-MOST_PROMPTS)) editor.addToHistory(prompt)
    editor.setAutocompleteProvider(
      new CombinedAutocompleteProvider(
        COMMANDS.map(({ name, argument, description }) => ({
          name,
          description,
          ...(argument === undefined ? {} : { argumentHint: argument }),
          ...(name === 'model' ? { getArgumentCompletions: text => this.#completeModel(text) } : {}),
        })),
        this.#chat.cwd,
      ),
    )
    editor.onSubmit = text => this.#submit(text)
    return editor
  }

  #completeModel(text: string): { value: string; label: string }[] {
    const names = usableProviders(this.#chat.opened.loaded).map(name => `${name}/`)
    return names.filter(name => name.startsWith(text)).map(name => ({ value: name, label: name }))
  }

  #submit(text: string): void {
    const line = readLine(text)
    if (line.kind === 'nothing') return
    this.#editor.addToHistory(text)
    if (line.kind === 'message') void this.#chat.send(line.text)
    else if (line.kind === 'command') void runCommand(this.#chat, this, line.name, line.argument)
    else this.#chat.dispatch({ type: 'notice', tone: 'error', text: unknownCommand(line.word) })
  }

  #listen(data: string): { consume: true } | undefined {
    if (isKeyRelease(data)) return undefined
    if (matchesKey(data, 'ctrl+c')) this.#interrupt()
    else if (matchesKey(data, 'ctrl+d') && this.#isIdleInput()) this.#leave()
    else if (matchesKey(data, 'ctrl+r')) this.#chat.dispatch({ type: 'toggle-reasoning' })
    else {
      this.#forgetInterrupt()
      if (matchesKey(data, 'enter')) this.#closeStaleMenu()
      return this.#keepTyping(data)
    }
    return { consume: true }
  }

  /** The menu follows the text a moment later: Enter on a whole command must not take another one from it. */
  #closeStaleMenu(): void {
    const line = readLine(this.#editor.getText())
    const isWhole = line.kind === 'command' && line.argument === ''
    if (isWhole && this.#editor.isShowingAutocomplete()) this.#editor.handleInput('\u001b')
  }

  /** A user in the middle of typing has not read the question: the key goes to the text. */
  #keepTyping(data: string): { consume: true } | undefined {
    const now = Date.now()
    const wasTyping =
      this.#editor.getText() !== '' && now - Math.max(this.#typedAt, this.#askedAt) < TYPING_MS
    const isAsked = this.#questions.length > 0 && !this.#picker
    if (!isAsked || wasTyping) this.#typedAt = now
    if (!isAsked || !wasTyping) return undefined
    this.#editor.handleInput(data)
    this.#tui.requestRender()
    return { consume: true }
  }

  #isIdleInput(): boolean {
    return !this.#picker && this.#editor.getText() === ''
  }

  #interrupt(): void {
    const now = Date.now()
    const isSecond = now - this.#interruptedAt < TWICE_MS
    this.#interruptedAt = now
    if (isSecond) {
      this.#leave()
      return
    }
    if (this.#picker) this.#picker.onDone(undefined)
    else if (this.#chat.busy) this.#chat.stop()
    else this.#editor.setText('')
    this.#hint('Ctrl-C again leaves')
  }

  #hint(text: string): void {
    this.#status.hint = text
    clearTimeout(this.#hintTimer)
    this.#hintTimer = setTimeout(() => this.#forgetInterrupt(), TWICE_MS)
    this.#tui.requestRender()
  }

  /** A user who continues typing does not want to leave. */
  #forgetInterrupt(): void {
    if (this.#status.hint === '') return
    clearTimeout(this.#hintTimer)
    this.#interruptedAt = Number.NEGATIVE_INFINITY
    this.#status.hint = ''
    this.#tui.requestRender()
  }

  /** Leaves the transcript on the terminal, without the input. */
  async #close(isHungUp: boolean): Promise<void> {
    clearTimeout(this.#hintTimer)
    this.#isClosed = true
    this.#chat.onChange = () => {}
    this.#activity.stop()
    if (isHungUp) {
      this.#io.stdin.pause()
      return
    }
    this.#tui.clear()
    this.#tui.addChild(new Transcript(() => this.#chat.state, this.#theme))
    this.#tui.requestRender()
    await this.#terminal.drainInput(200, 30)
    this.#tui.stop()
  }
}

class Line implements Component {
  readonly #text: string
  constructor(text: string) {
    this.#text = text
  }
  invalidate(): void {}
  render(): string[] {
    return [this.#text]
  }
}

function unknownCommand(word: string): string {
  return `There is no command /${word}. /help lists the commands; begin with // to send a text with a slash.`
}
