/**
 * Requests to MCP servers that somebody has logged in to. The token is read for each request, so that a login, a logout
 * and a renewal of another process count at once. A token that the server refuses is renewed by one process at a time:
 * an authorization server may revoke a login whose refresh token is used twice.
 */
import type { OAuthDiscoveryState } from '@modelcontextprotocol/sdk/client/auth.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { activeTraceHeaders } from '../base/trace-context.js'
import { AgentError, messageOf } from '../errors.js'

export interface McpUrl {
  /** The address of a server that speaks streamable HTTP. */
  url: string
  headers?: Readonly<Record<string, string>> | undefined
  /** For `lango mcp login`. */
  oauth?: McpOAuth | undefined
}

/** How to log in to a server, where its authorization server cannot say. */
export interface McpOAuth {
  /** Of a client that was registered beforehand. Default: a client is registered with each login. */
  clientId?: string | undefined
  clientSecret?: string | undefined
  /** Default: what the server asks for. */
  scope?: string | undefined
  /** Of the address that the browser is sent back to. Default: any free one. */
  redirectPort?: number | undefined
}

/** A login as it is stored. */
export interface McpLogin {
  readonly version: 1
  /** The address of the server. */
  readonly url: string
  /** When the tokens were issued, in milliseconds since 1970. */
  readonly savedAt: number
  /** The client that is registered with the authorization server. */
  readonly client: OAuthClientInformationMixed
  /** Where the authorization server is: tokens are sent to no other. */
  readonly discovery: OAuthDiscoveryState
  /** Absent when the login has ended: the authorization server does not renew it. */
  readonly tokens?: OAuthTokens
}

/** Where logins are stored. */
export interface McpLogins {
  read(url: string): Promise<McpLogin | undefined>
  write(login: McpLogin): Promise<void>
  remove(url: string): Promise<void>
  list(): Promise<McpLogin[]>
  /** Does the work while no other process does work for this address. */
  exclusive<Result>(url: string, work: () => Promise<Result>): Promise<Result>
}

/** The transport to a server with an address. A configured `authorization` header is used instead of a login. */
export async function httpTransport(server: string, { url, headers = {} }: McpUrl, logins?: McpLogins) {
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const send =
    logins && !hasAuthorization(headers) ? authorizedFetch(server, url, logins, tracedFetch) : tracedFetch
  // The SDK's types were not written for exactOptionalPropertyTypes; the class is a Transport.
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: send,
  }) as Transport
}

export function hasAuthorization(headers: Readonly<Record<string, string>>): boolean {
  return Object.keys(headers).some(name => name.toLowerCase() === 'authorization')
}

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/** Sends requests with the token of the login, if there is one, and renews a token that is refused. */
function authorizedFetch(server: string, url: string, logins: McpLogins, send: Fetch): Fetch {
  return async (address, init = {}) => {
    const login = await logins.read(url)
    if (!login) return send(address, init)
    const { tokens } = login
    if (!tokens) throw expired(server)
    const response = await send(address, withToken(init, tokens))
    if (response.status !== 401) return response
    await response.body?.cancel()
    return send(address, withToken(init, await renewed(server, login, tokens, logins)))
  }
}

/** When the access token ends; `undefined` when the authorization server did not say. */
export function loginEndsAt({ savedAt, tokens }: McpLogin): number | undefined {
  const { expires_in: seconds } = tokens ?? {}
  return seconds === undefined ? undefined : savedAt + seconds * 1000
}

/** What a person does about a server that wants a login. */
export function loginCommand(server: string): string {
  return `\`lango mcp login ${server}\``
}

/** A fetch for authorization servers: they do not get the headers of the MCP server, and they answer in time. */
export const fetchAuthorization: Fetch = (url, init = {}) =>
  fetch(url, { ...init, signal: AbortSignal.timeout(AUTHORIZATION_MS) })

const AUTHORIZATION_MS = 15_000

/** The tokens after the given ones. Another process may have renewed them in the meantime. */
async function renewed(
  server: string,
  login: McpLogin,
  refused: OAuthTokens,
  logins: McpLogins,
): Promise<OAuthTokens> {
  return logins.exclusive(login.url, async () => {
    const now = await logins.read(login.url)
    if (!now?.tokens) throw expired(server)
    if (now.tokens.access_token !== refused.access_token) return now.tokens
    const { refresh_token: refreshToken } = now.tokens
    if (refreshToken === undefined) return end(server, now, logins)
    const { refreshAuthorization } = await import('@modelcontextprotocol/sdk/client/auth.js')
    const { authorizationServerUrl, authorizationServerMetadata: metadata, resourceMetadata } = now.discovery
    try {
      const tokens = await refreshAuthorization(authorizationServerUrl, {
        clientInformation: now.client,
        refreshToken,
        fetchFn: fetchAuthorization,
        ...defined({ metadata, resource: resourceMetadata?.resource }),
      })
      await logins.write({ ...now, tokens, savedAt: Date.now() })
      return tokens
    } catch (error) {
      if (isRefusal(error)) return end(server, now, logins)
      const words = `The login to MCP server "${server}" could not be renewed at ${authorizationServerUrl}: ${messageOf(error)}`
      throw new AgentError('provider-unavailable', words, { retryable: true, cause: error })
    }
  })
}

/** The authorization server does not accept the refresh token, or does not know the client any more. */
function isRefusal(error: unknown): boolean {
  const code = isRecord(error) ? error.errorCode : undefined
  return code === 'invalid_grant' || code === 'invalid_client' || code === 'unauthorized_client'
}

async function end(server: string, login: McpLogin, logins: McpLogins): Promise<never> {
  const { tokens: _, ...rest } = login
  await logins.write(rest)
  throw expired(server)
}

function expired(server: string): AgentError {
  const words = `The login to MCP server "${server}" has expired. Run ${loginCommand(server)}.`
  return new AgentError('provider-auth', words)
}

function withToken(init: RequestInit, { access_token: token }: OAuthTokens): RequestInit {
  const headers = new Headers(init.headers)
  headers.set('authorization', `Bearer ${token}`)
  return { ...init, headers }
}

/** A request carries the trace of the tool call that it is made for. */
function tracedFetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
  const trace = Object.entries(activeTraceHeaders())
  if (trace.length === 0) return fetch(url, init)
  const headers = new Headers(init.headers)
  for (const [name, value] of trace) headers.set(name, value)
  return fetch(url, { ...init, headers })
}
