/**
 * Where `${NAME}` of a secret may be written: in a field that exists to hold one. Anywhere else, in an address, a
 * file's name, an instruction or an argument, the secret would be sent, stored or logged.
 */

export interface SecretUse {
  path: readonly PropertyKey[]
  /** The text before anything is filled in. */
  text: string
  variable: string
  value: string | undefined
}

/** True for a variable that is no secret, and for a secret in a field of its own. */
export function mayHoldSecret({ path, text, variable, value }: SecretUse): boolean {
  if (!isSecretVariable(variable) || isCount(value)) return true
  if (isSecretField(path)) return true
  // A database's password belongs into its address; a provider's key or a token does not.
  return path[0] === 'store' && /^postgres(ql)?:/i.test(text) && PASSWORD.test(variable)
}

/** What is wrong with a secret in the wrong place, and what to do. */
export function misplacedSecret(path: string, variable: string): string {
  const fix =
    path === 'store'
      ? 'Put the whole address into one variable such as DATABASE_URL, or name the variable …_PASSWORD if it is the password of the database.'
      : 'A secret belongs into `apiKey`, `headers`, `env` or `server.tokens`.'
  return `\`${path}\` asks for ${variable}, which is a secret by its name, and a secret is not filled in there. ${fix}`
}

/** Whether a variable of that name holds a key, a token, a password or the like. */
export function isSecretVariable(name: string): boolean {
  return SECRET.test(name)
}

const SECRET =
  /(^|_)(api_?|access_?|private_?)?(keys?|tokens?|secrets?|credentials?|cookies?|authorization|bearer|passphrase)(_?id)?(_?\d+)?$|apikeys?(_?\d+)?$|(password|passwd|_pass|_pwd)(_?\d+)?$/i

const PASSWORD = /(password|passwd|_pass|_pwd)(_?\d+)?$/i

/** Numbers under such a name are counts, as in MAX_TOKENS. */
function isCount(value: string | undefined): boolean {
  return value !== undefined && /^\d{1,9}$/.test(value.trim())
}

function isSecretField(path: readonly PropertyKey[]): boolean {
  const [room, second, third] = path
  switch (room) {
    case 'providers':
      return third === 'apiKey' || third === 'headers'
    case 'mcpServers':
      return third === 'env' || third === 'headers'
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
