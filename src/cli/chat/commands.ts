import { randomInt } from 'node:crypto'
import type { SessionKey } from '../../session/message.js'
import type { SessionStore } from '../../session/session-store.js'

/** The slash commands: what they are called, what they take, and how a typed line is read. */

export interface ChatCommand {
  readonly name: CommandName
  readonly argument?: string
  readonly description: string
}

export type CommandName =
  | 'help'
  | 'model'
  | 'sessions'
  | 'new'
  | 'inspect'
  | 'reasoning'
  | 'budget'
  | 'export'
  | 'save'
  | 'quit'

export const COMMANDS: readonly ChatCommand[] = [
  { name: 'help', description: 'commands and keys' },
  { name: 'model', argument: '[provider/model]', description: 'use another model from here on' },
  { name: 'sessions', description: 'go to another session' },
  { name: 'new', description: 'begin a new session' },
  { name: 'inspect', description: 'what the model was sent in the last run' },
  { name: 'reasoning', description: 'show or fold what the model thought' },
  { name: 'budget', argument: 'USD', description: 'go on with a run that ended at its budget' },
  { name: 'export', argument: '[file]', description: 'write the session to a file (.jsonl or .md)' },
  { name: 'save', argument: '[file]', description: 'write the newest picture or file of the session' },
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
  ['Alt-Enter, Ctrl-J', 'new line (Shift-Enter where the terminal reports it)'],
  ['Up, Down', 'what you sent before'],
  ['Tab', 'complete a command or a file name'],
  ['Ctrl-R', 'show or fold reasoning'],
  ['Ctrl-C', 'stop the answer; twice: leave'],
  ['Ctrl-D', 'leave, on an empty line'],
]

/** A new session's id that a person can read, say and type again, such as `calm-otter-417`. */
function sessionName(): string {
  const pick = (words: readonly string[]) => words[randomInt(words.length)] ?? ''
  return `${pick(QUALITIES)}-${pick(ANIMALS)}-${randomInt(100, 1000)}`
}

/** A name that no session of this user has yet. */
export async function unusedSessionName(
  store: SessionStore,
  owner: Omit<SessionKey, 'sessionId'>,
): Promise<string> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const sessionId = sessionName()
    const found = await store.loadSession({ ...owner, sessionId }, { budgetTokens: 'off', maxMessages: 1 })
    if (!found) return sessionId
  }
  return `${sessionName()}-${randomInt(1_000_000, 10_000_000)}`
}

const QUALITIES =
  'able bold brave bright brisk calm clear clever cool eager early fair fast fine fond free fresh gentle glad good grand happy keen kind light lively loud lucky merry mild neat noble open plain proud quick quiet rapid ready round sharp shy smart snug soft solid sound still sunny swift tidy true warm wise witty young'.split(
    ' ',
  )

const ANIMALS =
  'ant badger bat bear beaver bee bison boar cat colt crab crane crow deer dingo dove duck eagle elk falcon fawn finch fox frog gecko goat goose hare hawk hen heron horse ibis jay koala lamb lark lion llama lynx mole moose moth mouse newt otter owl panda pony puma quail rabbit raven robin seal shrew snail sparrow stork swan tiger toad trout viper wolf wren yak zebra'.split(
    ' ',
  )
