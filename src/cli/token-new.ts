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
  await print(`Token, shown only now: send it as "authorization: Bearer …", or open /login?token=… of the server.
  ${token}

Hashed form, for the configuration; "user" is the name of the token's owner.
  "server": { "tokens": { "${hash}": "user" } }
`)
  return 0
}
