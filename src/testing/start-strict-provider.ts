import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isRecord } from '../base/is-record.js'
import { AgentError, checkArgument, messageOf } from '../errors.js'
import { STRICT_PROFILES, type StrictProfile } from './strict/profile.js'
import {
  type RecordedRequest,
  type RecordedViolation,
  StrictServer,
  type StrictServerSettings,
} from './strict/strict-server.js'

/** How a strict server is started; only `profile` is needed. */
export interface StrictProviderOptions extends StrictServerSettings {
  /** Default 0: any free port. */
  readonly port?: number
  /** Default `127.0.0.1`. */
  readonly host?: string
}

/** A running strict server. */
export interface StrictProvider {
  readonly profile: StrictProfile
  /** What the vendor's own SDK takes as base URL. */
  readonly baseUrl: string
  readonly port: number
  /** Every body received, in order. */
  readonly requests: readonly RecordedRequest[]
  /** Every rule that a request was refused for (or, with status 200, answered with nothing for). */
  readonly violations: readonly RecordedViolation[]
  close(): Promise<void>
}

/**
 * Starts a fake provider that enforces the real rules of a model generation and refuses with the vendor's
 * real error bodies. Point any framework at its `baseUrl`.
 *
 * ```ts
 * import { startStrictProvider } from 'lango/testing'
 *
 * const server = await startStrictProvider({ profile: 'openai-chat', script: [{ text: 'It rains.' }] })
 * console.log(server.baseUrl, server.violations)
 * await server.close()
 * ```
 */
export async function startStrictProvider(options: StrictProviderOptions): Promise<StrictProvider> {
  checkArgument(isRecord(options), 'startStrictProvider', 'needs options with a profile')
  const { port = 0, host = '127.0.0.1', profile } = options
  if (!STRICT_PROFILES.includes(profile)) {
    const known = STRICT_PROFILES.join(', ')
    throw new AgentError(
      'invalid-argument',
      `There is no strict profile '${profile}'. Choose one of: ${known}.`,
    )
  }
  const strict = new StrictServer(options)
  const server = createServer((request, response) => void strict.handle(request, response))
  await listen(server, port, host)
  const address = server.address() as AddressInfo
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return {
    profile,
    baseUrl: strict.baseUrl(`http://${name}:${address.port}`),
    port: address.port,
    requests: strict.requests,
    violations: strict.violations,
    close: () => close(server),
  }
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', error => {
      reject(
        new AgentError('invalid-argument', `Could not listen on ${host}:${port}: ${messageOf(error)}`, {
          cause: error,
        }),
      )
    })
    server.listen(port, host, resolve)
  })
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return
  await new Promise<void>(resolve => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
