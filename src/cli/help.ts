import { COMMON_OPTIONS, type CommandSpec, optionsOf } from './command.js'

/** Longer lines are hard to read, however wide the terminal is. */
const MOST_COLUMNS = 100

/** The help of a command. `path` is how it is called, as in `lango sessions list`. */
export function helpText(command: CommandSpec, path: string, columns = MOST_COLUMNS): string {
  const width = Math.min(columns, MOST_COLUMNS)
  const { description, arguments: words = [], commands = [], examples, exitCodes = [] } = command
  const isRoot = path === command.name
  const options = [
    ...optionsOf(command).map(({ flags, description: text }) => [flags, text] as const),
    ...COMMON_OPTIONS.map(({ flags, description: text }) => [flags, text] as const),
    ...(isRoot ? [['-v, --version', 'the version'] as const] : []),
  ]
  const sections = [
    wrapped(description.replaceAll('\n', ' '), width).join('\n'),
    `Usage: ${usage(command, path)}`,
    section(
      'Commands',
      listed(
        commands.map(({ name, summary }) => [name, summary] as const),
        width,
      ),
    ),
    section(
      'Arguments',
      listed(
        words.map(({ name, description: text }) => [name, text] as const),
        width,
      ),
    ),
    section('Options', listed(options, width)),
    section(
      'Exit codes',
      listed(
        exitCodes.map(([code, meaning]) => [String(code), meaning] as const),
        width,
      ),
    ),
    section('Examples', exampleLines(examples, width)),
    commands.length > 0 ? `"${path} <command> --help" tells about a command.` : '',
  ]
  return `${sections.filter(text => text !== '').join('\n\n')}\n`
}

function usage({ commands, arguments: words = [] }: CommandSpec, path: string): string {
  if (commands) return `${path} <command> [options]`
  return [path, ...words.map(({ name }) => name), '[options]'].join(' ')
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [`${title}:`, ...lines.map(line => `  ${line}`)].join('\n')
}

/** Two columns; the second is wrapped below itself. */
function listed(rows: readonly (readonly [name: string, text: string])[], columns: number): string[] {
  const width = Math.max(0, ...rows.map(([name]) => name.length)) + 2
  return rows.flatMap(([name, text]) =>
    wrapped(text, columns - width - 2).map((line, index) => (index === 0 ? name : '').padEnd(width) + line),
  )
}

/** What an example does stands beside it, or below when there is no room. */
function exampleLines(examples: CommandSpec['examples'], columns: number): string[] {
  const width = Math.max(0, ...examples.map(([line]) => line.length)) + 2
  const longest = Math.max(0, ...examples.map(([, meaning]) => meaning.length))
  if (width + longest + 4 <= columns)
    return examples.map(([line, meaning]) => `${line.padEnd(width)}# ${meaning}`)
  return examples.flatMap(([line, meaning]) => [`# ${meaning}`, line])
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line]
}
