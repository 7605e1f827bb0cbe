/** Commands that are suggested: whoever copies one gets to the same store, app and user. */
import { redactText } from '../config/redact.js'
import type { Flags } from './command.js'
import { plainLine } from './plain-text.js'

/** Those of the flags that were given, each with a space in front; a password in an address is left out. */
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

/** A word as a shell takes it. */
export function quoted(word: string): string {
  const plain = plainLine(word)
  return /^[\w@%+=:,./-]+$/.test(plain) ? plain : `'${plain.replaceAll("'", `'\\''`)}'`
}
