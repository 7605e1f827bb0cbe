/** Suggested commands, with the flags that lead to the same store, app and user. */

import { redactText } from '../base/redact.js'
import type { Flags } from './command.js'
import type { Io } from './io.js'
import { plainLine } from './plain-text.js'

/** How to type a command here: `npx` and the scripts of a clone put no `lango` on the path. */
export function called({ env }: Pick<Io, 'env'>, command: string): string {
  if (env.npm_lifecycle_event === 'chat' && command === 'chat') return 'npm run chat --'
  const byNpx = env.npm_command === 'exec' && /^'?lango\b/.test(env.npm_lifecycle_script ?? '')
  const inClone = env.npm_lifecycle_event === 'chat' || env.npm_lifecycle_event === 'start'
  return byNpx || inClone ? `npx lango ${command}` : `lango ${command}`
}

/** The given flags, each with a leading space; a password in a URL is hidden. */
export function givenFlags(
  flags: Readonly<Partial<Record<keyof Flags, unknown>>>,
  names: readonly (keyof Flags)[],
): string {
  return names
    .flatMap(name => {
      const value = flags[name]
      if (typeof value !== 'string') return value === true ? [`--${name}`] : []
      return [`--${name}`, quoted(name === 'store' ? redactText(value) : value)]
    })
    .map(word => ` ${word}`)
    .join('')
}

/** A word quoted for a shell. */
export function quoted(word: string): string {
  const plain = plainLine(word)
  return /^[\w@%+=:,./-]+$/.test(plain) ? plain : `'${plain.replaceAll("'", `'\\''`)}'`
}
