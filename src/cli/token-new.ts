import { hashToken, newToken } from '../server/security/server-token.js'
import type { Flags } from './command.js'
import { print, printJson } from './output.js'

/** `lango token new`. Reads no configuration and writes none. */
export async function tokenNew(flags: Flags): Promise<number> {
  const token = newToken()
  const hash = hashToken(token)
  if (flags.json) {
    await printJson({ token, hash })
    return 0
  }
  await print(`Token, shown only once. Send it as "authorization: Bearer …", or open /login?token=… on the server.
  ${token}

Hash, for the configuration. "user" is the owner of the token.
  "server": { "tokens": { "${hash}": "user" } }
`)
  return 0
}
