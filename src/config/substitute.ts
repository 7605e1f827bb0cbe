import { own } from '../base/own.js'
import { isPlain } from '../base/redact.js'
import { mayHoldSecret } from './secret-places.js'

/** A variable that a text asks for and that is not set. */
export interface MissingVariable {
  path: readonly PropertyKey[]
  variable: string
}

/** A text that was nothing but one variable, so it may mean a number or a flag. */
export interface SubstitutedText {
  path: readonly PropertyKey[]
  text: string
}

export interface Substitution {
  value: unknown
  missing: MissingVariable[]
  /** Secrets that a text asks for where none may be. They are not filled in. */
  misplaced: MissingVariable[]
  whole: SubstitutedText[]
}

const EXPRESSION = /\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g
const WHOLE = /^\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}$/

/**
 * Fills `${NAME}` and `${NAME:-default}` in all texts below a value. `$${` is a `${` that stays. As in a shell,
 * a variable that is set to nothing takes the default. Objects that were made in code are left alone.
 */
export function substitute(value: unknown, env: Readonly<Record<string, string | undefined>>): Substitution {
  const missing: MissingVariable[] = []
  const misplaced: MissingVariable[] = []
  const whole: SubstitutedText[] = []
  const fill = (text: string, path: readonly PropertyKey[]): string => {
    const filled = text.replaceAll(EXPRESSION, (_all, escaped, name: string, fallback?: string) => {
      if (escaped) return '${'
      const found = own(env, name)
      if (!mayHoldSecret({ path, text, variable: name, value: found })) {
        misplaced.push({ path, variable: name })
        return ''
      }
      if (found !== undefined && (found !== '' || fallback === undefined)) return found
      if (fallback === undefined) missing.push({ path, variable: name })
      return fallback ?? ''
    })
    if (WHOLE.test(text)) whole.push({ path, text: filled })
    return filled
  }
  const visit = (item: unknown, path: readonly PropertyKey[]): unknown => {
    if (typeof item === 'string') return fill(item, path)
    if (Array.isArray(item)) return item.map((entry, index) => visit(entry, [...path, index]))
    if (!isPlain(item) || isLive(item)) return item
    return Object.fromEntries(Object.entries(item).map(([key, entry]) => [key, visit(entry, [...path, key])]))
  }
  return { value: visit(value, []), missing, misplaced, whole }
}

/** A tool of `defineTool` is a plain object with functions: its texts are not ours to change. */
function isLive(value: Record<string, unknown>): boolean {
  return Object.values(value).some(entry => typeof entry === 'function')
}
