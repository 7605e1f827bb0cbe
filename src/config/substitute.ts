/**
 * Fills `${NAME}` in the texts of a configuration. A secret is filled in only where a field exists to hold one:
 * anywhere else, in an address, a file name, an instruction or an argument, it would be sent, stored or logged.
 */
import { own } from '../base/own.js'
import { isPlain } from '../base/redact.js'

/** A variable that a text names and that is not set. */
export interface MissingVariable {
  path: readonly PropertyKey[]
  variable: string
}

/** A text that consisted of one variable, so it may be a number or a flag. */
export interface SubstitutedText {
  path: readonly PropertyKey[]
  text: string
}

export interface Substitution {
  value: unknown
  missing: MissingVariable[]
  /** Secrets in places that must not hold one. They are not filled in. */
  misplaced: MissingVariable[]
  whole: SubstitutedText[]
}

const EXPRESSION = /\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g
/** What a text without a closing brace can hold. */
const ESCAPE = /\$(\$\{)/g
const WHOLE = /^\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}$/

/**
 * Fills `${NAME}` and `${NAME:-default}` in all texts below a value. `$${` is a `${` that stays. As in a shell,
 * an empty variable takes the default. Objects made in code are not changed.
 */
export function substitute(value: unknown, env: Readonly<Record<string, string | undefined>>): Substitution {
  const missing: MissingVariable[] = []
  const misplaced: MissingVariable[] = []
  const whole: SubstitutedText[] = []
  const fill = (text: string, path: readonly PropertyKey[]): string => {
    // Split after the last brace: each unclosed expression after it would search the whole rest of the text.
    const end = text.lastIndexOf('}') + 1
    const head = text
      .slice(0, end)
      .replaceAll(EXPRESSION, (_all, escaped, name: string, fallback?: string) => {
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
    const filled = head + text.slice(end).replaceAll(ESCAPE, '$1')
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

/** A tool of `defineTool` is a plain object with functions: its texts are not changed. */
function isLive(value: Record<string, unknown>): boolean {
  return Object.values(value).some(entry => typeof entry === 'function')
}

interface SecretUse {
  path: readonly PropertyKey[]
  /** The text before anything is filled in. */
  text: string
  variable: string
  value: string | undefined
}

/** True for a variable that is no secret, and for a secret in a field that holds one. */
export function mayHoldSecret({ path, text, variable, value }: SecretUse): boolean {
  if (!isSecretVariable(variable) || isCount(value)) return true
  if (isSecretField(path)) return true
  // A database's password belongs in its URL; a provider's key or a token does not.
  return path[0] === 'store' && /^postgres(ql)?:/i.test(text) && PASSWORD.test(variable)
}

/** The message for a secret in the wrong place. */
export function misplacedSecret(path: string, variable: string): string {
  const fix =
    path === 'store'
      ? 'Put the whole URL in one variable such as DATABASE_URL, or name the variable …_PASSWORD if it is the password of the database.'
      : 'Secrets are allowed in `apiKey`, `headers`, `env`, `clientSecret` and `server.tokens`.'
  return `\`${path}\` refers to ${variable}, which is a secret by its name, and secrets are not filled in there. ${fix}`
}

/** Whether a variable of that name holds a key, a token, a password or the like. */
export function isSecretVariable(name: string): boolean {
  return SECRET.test(name)
}

const SECRET =
  /(^|_)(api_?|access_?|private_?)?(keys?|tokens?|secrets?|credentials?|cookies?|authorization|bearer|passphrase)(_?id)?(_?\d+)?$|apikeys?(_?\d+)?$|(password|passwd|_pass|_pwd)(_?\d+)?$/i

const PASSWORD = /(password|passwd|_pass|_pwd)(_?\d+)?$/i

/** A number under such a name is a count, as in MAX_TOKENS. */
function isCount(value: string | undefined): boolean {
  return value !== undefined && /^\d{1,9}$/.test(value.trim())
}

function isSecretField(path: readonly PropertyKey[]): boolean {
  const [room, second, third, fourth] = path
  switch (room) {
    case 'providers':
      return third === 'apiKey' || third === 'headers'
    case 'mcpServers':
      return third === 'env' || third === 'headers' || fourth === 'clientSecret'
    case 'tools':
      return second === 'env'
    case 'server':
      return second === 'tokens'
    case 'telemetry':
      return second === 'headers'
    default:
      return false
  }
}
