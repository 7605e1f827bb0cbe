/** The slash commands: what they are called, what they take, and how a typed line is read. */

export interface ChatCommand {
  readonly name: CommandName
  readonly argument?: string
  readonly description: string
}

export type CommandName = 'help' | 'model' | 'sessions' | 'new' | 'inspect' | 'reasoning' | 'export' | 'quit'

export const COMMANDS: readonly ChatCommand[] = [
  { name: 'help', description: 'commands and keys' },
  { name: 'model', argument: '[provider/model]', description: 'use another model from here on' },
  { name: 'sessions', description: 'go to another session' },
  { name: 'new', description: 'begin a new session' },
  { name: 'inspect', description: 'what the model was sent in the last run' },
  { name: 'reasoning', description: 'show or fold what the model thought' },
  { name: 'export', argument: '[file]', description: 'write the session to a file (.jsonl or .md)' },
  { name: 'quit', description: 'leave; the session is kept' },
]

export type TypedLine =
  | { kind: 'nothing' }
  | { kind: 'message'; text: string }
  | { kind: 'command'; name: CommandName; argument: string }
  | { kind: 'unknown-command'; word: string }

/**
 * Reads what was typed. A word after a slash is a command; `//` begins a message with a slash, and so does
 * anything that is no plain word, such as a path.
 */
export function readLine(line: string): TypedLine {
  const text = line.trim()
  if (text === '') return { kind: 'nothing' }
  if (text.startsWith('//')) return { kind: 'message', text: text.slice(1) }
  const [, word = '', rest = ''] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/i.exec(text) ?? []
  if (word === '') return { kind: 'message', text }
  const name = word.toLowerCase()
  const command = COMMANDS.find(each => each.name === name) ?? ALIASES.get(name)
  if (!command) return { kind: 'unknown-command', word }
  return { kind: 'command', name: command.name, argument: rest.trim() }
}

const ALIASES: ReadonlyMap<string, { name: CommandName }> = new Map([
  ['exit', { name: 'quit' }],
  ['session', { name: 'sessions' }],
  ['models', { name: 'model' }],
])

/** The lines of `/help`. */
export function helpLines(): string[] {
  const rows = [
    ...COMMANDS.map(({ name, argument, description }): [string, string] => [
      argument === undefined ? `/${name}` : `/${name} ${argument}`,
      description,
    ]),
    ['', ''] as [string, string],
    ...KEYS,
  ]
  return rows.map(([left, right]) => (left === '' ? '' : `  ${left.padEnd(25)} ${right}`))
}

const KEYS: readonly [string, string][] = [
  ['Enter', 'send'],
  ['Alt-Enter, Ctrl-J', 'new line (Shift-Enter where the terminal tells it apart)'],
  ['Up, Down', 'what you sent before'],
  ['Tab', 'complete a command or a file name'],
  ['Ctrl-R', 'show or fold reasoning'],
  ['Ctrl-C', 'stop the answer; twice: leave'],
  ['Ctrl-D', 'leave, on an empty line'],
]
