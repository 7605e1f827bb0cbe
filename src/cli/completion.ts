/** Shell completion scripts, generated from the command table. */

import { own } from '../base/own.js'
import { DEFAULT_STORE } from '../config/find-config.js'
import { AgentError } from '../errors.js'
import { vendorNames } from '../provider/vendors.js'
import { STRICT_PROFILES } from '../testing/strict/profile.js'
import {
  COMMON_OPTIONS,
  type CommandSpec,
  longName,
  type OptionSpec,
  optionsOf,
  shortName,
  takesValue,
} from './command.js'
import type { Io } from './io.js'
import { print } from './output.js'

/** `lango completion`. */
export async function completion(io: Io, shell: string, root: CommandSpec): Promise<number> {
  const script = own(SCRIPTS, shell)
  if (!script) {
    throw new AgentError('invalid-argument', `No completion for the shell "${shell}". Use bash, zsh or fish.`)
  }
  await print(io, script(root))
  return 0
}

const SCRIPTS: Readonly<Record<string, (root: CommandSpec) => string>> = { bash, zsh, fish }

interface Place {
  /** The words that lead there, such as `sessions list`; empty for the root. */
  path: string
  command: CommandSpec
}

function places(command: CommandSpec, path = ''): Place[] {
  const children = command.commands ?? []
  return [{ path, command }, ...children.flatMap(child => places(child, `${path} ${child.name}`.trim()))]
}

/** A group alone takes the options of its fallback. */
function optionsAt({ command }: Place): OptionSpec[] {
  const fallback = command.commands?.find(({ name }) => name === command.fallback)
  return [...optionsOf(fallback ?? command), ...COMMON_OPTIONS]
}

function wordsAt({ command }: Place): string[] {
  return [
    ...(command.commands ?? []).map(({ name }) => name),
    ...(command.arguments ?? []).flatMap(({ choices = [] }) => choices),
  ]
}

/** Options with known values. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  '--store': [DEFAULT_STORE, 'memory:', 'postgres://'],
  '--profile': STRICT_PROFILES,
  '--provider': vendorNames(),
}

function shellTable(root: CommandSpec): string {
  return places(root)
    .map(place => {
      const words = [...wordsAt(place), ...optionsAt(place).map(longName)].join(' ')
      return `    '${place.path}') words='${words}' ;;`
    })
    .join('\n')
}

function valuedOptions(root: CommandSpec): string {
  const all = places(root).flatMap(({ command }) => optionsOf(command).filter(takesValue).map(longName))
  return [...new Set(all)].filter(name => !Object.hasOwn(VALUES, name)).join('|')
}

function valueTable(): string {
  return Object.entries(VALUES)
    .map(([option, values]) => `    ${option}) words='${values.join(' ')}' ;;`)
    .join('\n')
}

function groupNames(root: CommandSpec): string {
  return (root.commands ?? [])
    .filter(({ commands }) => commands)
    .map(({ name }) => name)
    .join('|')
}

function bash(root: CommandSpec): string {
  return `# bash completion for lango: source <(lango completion bash)
_lango() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words='' path="\${COMP_WORDS[1]}"
  [ "$COMP_CWORD" -eq 1 ] && path=''
  case "$path" in
    ${groupNames(root)}) [ "$COMP_CWORD" -gt 2 ] && path="$path \${COMP_WORDS[2]}" ;;
  esac
  case "$previous" in
${valueTable()}
    ${valuedOptions(root)}) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  if [ -z "$words" ]; then case "$path" in
${shellTable(root)}
    *) words='${optionsAt({ path: '', command: root }).map(longName).join(' ')}' ;;
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ \${#COMPREPLY[@]} -eq 0 ] && COMPREPLY=($(compgen -f -- "$current"))
  case "$current" in *:*) __ltrim_colon_completions "$current" 2>/dev/null ;; esac
  return 0
}
complete -o filenames -F _lango lango
`
}

function zsh(root: CommandSpec): string {
  return `#compdef lango
# zsh completion for lango: source <(lango completion zsh)
_lango() {
  local current="\${words[CURRENT]}" previous="\${words[CURRENT-1]}" choices='' place="\${words[2]}"
  (( CURRENT == 2 )) && place=''
  case "$place" in
    ${groupNames(root)}) (( CURRENT > 3 )) && place="$place \${words[3]}" ;;
  esac
  case "$previous" in
${valueTable().replaceAll('words=', 'choices=')}
    ${valuedOptions(root)}) _files; return ;;
  esac
  if [[ -z "$choices" ]]; then case "$place" in
${shellTable(root).replaceAll('words=', 'choices=')}
  esac; fi
  compadd -- \${=choices}
  [[ "$current" == -* ]] || _files
}
compdef _lango lango
`
}

function fish(root: CommandSpec): string {
  const lines = places(root).flatMap(place => {
    const condition = fishCondition(place)
    const names = (place.command.commands ?? []).map(
      ({ name, summary }) => `complete -c lango -n '${condition}' -f -a ${name} -d '${escapeFish(summary)}'`,
    )
    const choices = (place.command.arguments ?? []).flatMap(({ choices: known = [] }) =>
      known.map(choice => `complete -c lango -n '${condition}' -f -a ${choice}`),
    )
    return [...names, ...choices, ...optionsAt(place).map(option => fishOption(option, condition))]
  })
  return `# fish completion for lango\n${[...new Set(lines)].join('\n')}\n`
}

function fishOption(option: OptionSpec, condition: string): string {
  const short = shortName(option)
  const values = own(VALUES, longName(option))
  const value = values ? ` -x -a '${values.join(' ')}'` : takesValue(option) ? ' -r' : ''
  const name = `-l ${longName(option).slice(2)}${short === undefined ? '' : ` -s ${short}`}`
  return `complete -c lango -n '${condition}' ${name}${value} -d '${escapeFish(option.description)}'`
}

function fishCondition({ path, command }: Place): string {
  if (path === '') return '__fish_use_subcommand'
  const [first, second] = path.split(' ')
  const seen = `__fish_seen_subcommand_from ${first}`
  if (second !== undefined) return `${seen}; and __fish_seen_subcommand_from ${second}`
  const below = (command.commands ?? []).map(({ name }) => name).join(' ')
  return below === '' ? seen : `${seen}; and not __fish_seen_subcommand_from ${below}`
}

function escapeFish(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
}
