import { createRequire } from 'node:module'
import type { IPty } from '@lydell/node-pty'
import type { Terminal as Screen } from '@xterm/headless'
import { BUILT_LANGO } from './built-lango.js'
import { TRUST_FILE } from './trust-file.js'

// Both are CommonJS; their names are not seen by an import.
const require = createRequire(import.meta.url)
const { spawn } = require('@lydell/node-pty') as typeof import('@lydell/node-pty')
const xterm = require('@xterm/headless') as typeof import('@xterm/headless')

export interface TerminalOptions {
  /** Words after `lango`. */
  args?: readonly string[]
  /** The working folder. */
  cwd: string
  columns?: number
  rows?: number
  env?: Readonly<Record<string, string>>
  /** The program, instead of the built command line. */
  file?: string
}

/** `lango` in a real pseudo-terminal, and what a person would see of it. */
export class TestTerminal {
  readonly #pty: IPty
  readonly #screen: Screen
  readonly #ended: Promise<number>
  #written = Promise.resolve()
  /** Everything that the program wrote, byte for byte. */
  output = ''

  constructor({ args = [], cwd, columns = 80, rows = 24, env = {}, file = BUILT_LANGO }: TerminalOptions) {
    this.#screen = new xterm.Terminal({ cols: columns, rows, scrollback: 5_000, allowProposedApi: true })
    this.#screen.unicode.register(WIDTHS)
    this.#screen.unicode.activeVersion = WIDTHS.version
    this.#pty = spawn(process.execPath, [file, ...args], {
      name: 'xterm-256color',
      cols: columns,
      rows,
      cwd,
      env: { ...cleanEnvironment(), ...env },
    })
    this.#pty.onData(data => {
      this.output += data
      this.#written = this.#written.then(
        () => new Promise<void>(resolve => this.#screen.write(data, resolve)),
      )
    })
    // What the terminal itself answers (its size, its cursor) goes back to the program.
    this.#screen.onData(data => this.#pty.write(data))
    this.#ended = new Promise(resolve => this.#pty.onExit(({ exitCode }) => resolve(exitCode)))
  }

  /** Presses the keys of a text. */
  type(text: string): void {
    this.#pty.write(text)
  }

  key(name: keyof typeof KEYS): void {
    this.#pty.write(KEYS[name])
  }

  /** The lines that are in view, without the blanks at their ends. */
  lines(): string[] {
    const { viewportY } = this.#screen.buffer.active
    return this.#read(viewportY, viewportY + this.#screen.rows)
  }

  screen(): string {
    return this.lines().join('\n')
  }

  /** Everything, from the beginning of what scrolled away. */
  all(): string {
    return this.#read(0, this.#screen.buffer.active.length).join('\n').trimEnd()
  }

  /** Waits until the screen (with what scrolled away) shows the text; fails with the screen. */
  async waitFor(text: string | RegExp, timeoutMs = 60_000): Promise<void> {
    const isShown = () => (typeof text === 'string' ? this.all().includes(text) : text.test(this.all()))
    await this.#until(isShown, `the screen never showed ${String(text)}`, timeoutMs)
  }

  async waitUntilGone(text: string, timeoutMs = 60_000): Promise<void> {
    await this.#until(() => !this.screen().includes(text), `the screen still shows ${text}`, timeoutMs)
  }

  async resize(columns: number, rows: number): Promise<void> {
    this.#screen.resize(columns, rows)
    this.#pty.resize(columns, rows)
  }

  /** The exit code. */
  async ended(timeoutMs = 60_000): Promise<number> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`the program has not ended:\n${this.all()}`)), timeoutMs)
    })
    try {
      const code = await Promise.race([this.#ended, late])
      await this.#written
      return code
    } finally {
      clearTimeout(timer)
    }
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    this.#pty.kill(signal)
  }

  #read(from: number, to: number): string[] {
    const buffer = this.#screen.buffer.active
    return Array.from(
      { length: to - from },
      (_, row) =>
        buffer
          .getLine(from + row)
          ?.translateToString(true)
          .trimEnd() ?? '',
    )
  }

  async #until(condition: () => boolean, failure: string, timeoutMs: number): Promise<void> {
    const end = Date.now() + timeoutMs
    while (!condition()) {
      if (Date.now() > end) throw new Error(`${failure}; it shows:\n${this.screen()}`)
      await new Promise(resolve => setTimeout(resolve, 20))
      await this.#written
    }
  }
}

const KEYS = {
  enter: '\r',
  escape: '\u001b',
  up: '\u001b[A',
  down: '\u001b[B',
  tab: '\t',
  backspace: '\u007f',
  newLine: '\n',
  'ctrl-c': '\u0003',
  'ctrl-d': '\u0004',
  'ctrl-r': '\u0012',
} as const

/** Nothing of the machine's own keys and settings may reach the program. Folders of tests are trusted. */
function cleanEnvironment(): Record<string, string> {
  const kept = ['PATH', 'HOME', 'TMPDIR', 'LANG'].flatMap(name => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  })
  return {
    ...Object.fromEntries(kept),
    TERM: 'xterm-256color',
    LANGO_TRUST: '1',
    LANGO_TRUST_FILE: TRUST_FILE,
  }
}

/** How wide characters are on today's terminals; xterm's own table is from 2010. */
const WIDTHS = {
  version: 'today',
  wcwidth(codepoint: number): 0 | 1 | 2 {
    const character = String.fromCodePoint(codepoint)
    if (/^[\p{Mn}\p{Me}\p{Cf}\p{Emoji_Modifier}]$/u.test(character)) return 0
    return /^[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uff60]$/u.test(
      character,
    )
      ? 2
      : 1
  },
  charProperties(codepoint: number, preceding: number): number {
    const width = WIDTHS.wcwidth(codepoint)
    const isJoined = (width === 0 || joins(preceding)) && preceding !== 0
    const whole = isJoined ? (preceding >> 1) & 3 : width
    return ((codepoint === ZERO_WIDTH_JOINER ? 1 : 0) << 3) | (whole << 1) | (isJoined ? 1 : 0)
  },
}

const ZERO_WIDTH_JOINER = 0x200d

function joins(properties: number): boolean {
  return properties >> 3 === 1
}
