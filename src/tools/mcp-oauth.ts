/**
 * The login to an MCP server: OAuth 2.1 with PKCE by the flow of the SDK. The browser is sent back to an address of this
 * machine, where a server waits for it; the person may also copy that address here from another machine's browser.
 */
import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  OAuthServerInfo,
} from '@modelcontextprotocol/sdk/client/auth.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { defined } from '../base/defined.js'
import { AgentError, messageOf } from '../errors.js'
import { loadOptional } from '../packages.js'
import { fetchAuthorization, type McpLogin, type McpLogins, type McpOAuth } from './mcp-login.js'

export interface LoginOptions {
  readonly server: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly oauth?: McpOAuth | undefined
  readonly logins: McpLogins
  /** Gets the address to open in a browser. */
  readonly open: (address: URL) => void
  /** The address that the browser was sent back to, when a person copies it. */
  readonly pasted?: Promise<string> | undefined
  readonly signal: AbortSignal
}

/** Logs in and stores the login. `undefined` when the server asks for none. */
export async function logIn(options: LoginOptions): Promise<McpLogin | undefined> {
  const { server, url, oauth = {}, logins, signal } = options
  requireEncryption(server, url)
  const challenge = await challengeOf(options)
  if (!challenge) return undefined
  const { auth } = await import('@modelcontextprotocol/sdk/client/auth.js')
  const state = randomBytes(24).toString('base64url')
  const returned = await listenForReturn(oauth.redirectPort ?? 0, state)
  try {
    const flow = new LoginFlow(returned.url, state, options)
    const shared = {
      serverUrl: url,
      fetchFn: fetchAuthorization,
      ...defined({
        resourceMetadataUrl: challenge.resourceMetadataUrl,
        scope: oauth.scope ?? challenge.scope,
      }),
    }
    await named(server, 'started', () => auth(flow, shared))
    const pasted = options.pasted?.then(text => readReturn(text, state))
    const answers = [returned.answer, ...(pasted ? [pasted] : []), stopped(signal)]
    const { code, issuer } = await Promise.race(answers)
    flow.checkIssuer(issuer)
    await named(server, 'completed', () => auth(flow, { ...shared, authorizationCode: code }))
    const login = flow.login()
    await logins.exclusive(url, () => logins.write(login))
    return login
  } finally {
    returned.close()
  }
}

/** Deletes a login, and asks the authorization server to revoke it. Says whether it did. */
export async function logOut({ url, client, tokens, discovery }: McpLogin, logins: McpLogins) {
  await logins.exclusive(url, () => logins.remove(url))
  const { authorizationServerMetadata: metadata } = discovery
  const token = tokens?.refresh_token ?? tokens?.access_token
  const address = metadata && 'revocation_endpoint' in metadata ? metadata.revocation_endpoint : undefined
  if (token === undefined || address === undefined) return { revoked: false }
  const { client_id: id, client_secret: secret } = client
  const body = new URLSearchParams({ token, client_id: id, ...defined({ client_secret: secret }) })
  const response = await fetchAuthorization(address, { method: 'POST', body }).catch(() => undefined)
  await response?.body?.cancel()
  return { revoked: response?.ok === true }
}

/** The SDK's view of one login. */
class LoginFlow implements OAuthClientProvider {
  readonly redirectUrl: string
  readonly state: () => string
  readonly #options: LoginOptions
  #client: OAuthClientInformationMixed | undefined
  #tokens: OAuthTokens | undefined
  #verifier = ''
  #discovery: OAuthDiscoveryState | undefined

  constructor(redirectUrl: string, state: string, options: LoginOptions) {
    this.redirectUrl = redirectUrl
    this.state = () => state
    this.#options = options
    const { clientId, clientSecret } = options.oauth ?? {}
    if (clientId !== undefined)
      this.#client = { client_id: clientId, ...defined({ client_secret: clientSecret }) }
  }

  get clientMetadata() {
    const { scope } = this.#options.oauth ?? {}
    return {
      client_name: 'Lango',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      ...defined({ scope }),
    }
  }

  clientInformation() {
    return this.#client
  }

  saveClientInformation(client: OAuthClientInformationMixed): void {
    this.#client = client
  }

  /** Those of an earlier login are not used: a person who logs in may want to be somebody else. */
  tokens() {
    return undefined
  }

  saveTokens(tokens: OAuthTokens): void {
    this.#tokens = tokens
  }

  redirectToAuthorization(address: URL): void {
    this.#options.open(address)
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }

  codeVerifier(): string {
    return this.#verifier
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    const { authorizationServerUrl, authorizationServerMetadata: metadata } = state as OAuthServerInfo
    for (const address of [
      authorizationServerUrl,
      metadata?.authorization_endpoint,
      metadata?.token_endpoint,
    ])
      if (address !== undefined) requireEncryption(this.#options.server, address)
    this.#discovery = state
  }

  discoveryState() {
    return this.#discovery
  }

  /** The answer of another authorization server is not taken (RFC 9207). */
  checkIssuer(issuer: string | undefined): void {
    const { issuer: known } = this.#discovery?.authorizationServerMetadata ?? {}
    if (issuer === undefined || known === undefined || issuer === known) return
    throw new AgentError(
      'provider-auth',
      `The answer came from ${issuer}, not from ${known}. Nothing was stored.`,
    )
  }

  login(): McpLogin {
    const { server, url } = this.#options
    if (!this.#client || !this.#tokens || !this.#discovery)
      throw new AgentError('provider-auth', `MCP server "${server}": the login is not complete.`)
    return {
      version: 1,
      url,
      savedAt: Date.now(),
      client: this.#client,
      discovery: this.#discovery,
      tokens: this.#tokens,
    }
  }
}

interface Challenge {
  resourceMetadataUrl?: URL
  scope?: string
}

/** What the server says to a client without a token; `undefined` when it needs none. */
async function challengeOf({
  server,
  url,
  headers = {},
  signal,
}: LoginOptions): Promise<Challenge | undefined> {
  const [{ extractWWWAuthenticateParams }, { LATEST_PROTOCOL_VERSION }] = await loadOptional('mcp', () =>
    Promise.all([
      import('@modelcontextprotocol/sdk/client/auth.js'),
      import('@modelcontextprotocol/sdk/types.js'),
    ]),
  )
  const params = {
    protocolVersion: LATEST_PROTOCOL_VERSION,
    capabilities: {},
    clientInfo: { name: 'lango', version: '0.1.0' },
  }
  const request = { jsonrpc: '2.0', id: 0, method: 'initialize', params }
  const accept = 'application/json, text/event-stream'
  let response: Response
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', accept },
      body: JSON.stringify(request),
      signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
    })
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? ` (${messageOf(error.cause)})` : ''
    throw new AgentError(
      'provider-unavailable',
      `MCP server "${server}" at ${url} does not answer: ${messageOf(error)}${cause}.`,
    )
  }
  await response.body?.cancel()
  if (response.ok) {
    const session = response.headers.get('mcp-session-id')
    if (session)
      await fetch(url, { method: 'DELETE', headers: { ...headers, 'mcp-session-id': session } }).catch(
        () => {},
      )
    return undefined
  }
  if (response.status !== 401 && response.status !== 403)
    throw new AgentError(
      'provider-rejected',
      `MCP server "${server}" answered with HTTP ${response.status}, not with a request to log in. Check its \`url\`: ${url}.`,
    )
  return extractWWWAuthenticateParams(response)
}

interface ReturnedAnswer {
  code: string
  issuer: string | undefined
}

/** A server for the browser that comes back. */
async function listenForReturn(port: number, state: string) {
  let resolve: (answer: ReturnedAnswer) => void = () => {}
  let reject: (error: Error) => void = () => {}
  const answer = new Promise<ReturnedAnswer>((...settle) => {
    ;[resolve, reject] = settle
  })
  // The answer may come before somebody waits for it.
  answer.catch(() => {})
  const server = createServer((request, response) => {
    const page = (status: number, text: string) =>
      response
        .writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
        .end(`${text}\n`)
    const path = request.url ?? '/'
    if (request.method !== 'GET' || !path.startsWith(`${RETURN_PATH}?`)) return void page(404, 'Not found.')
    try {
      resolve(readReturn(path, state))
      page(200, 'Lango has received the login. You can close this window.')
    } catch (error) {
      page(400, messageOf(error))
      // A caller that does not know the state cannot end the login.
      if (error instanceof AgentError && error.code === 'provider-auth') reject(error)
    }
  })
  await listen(server, port)
  const { port: actual } = server.address() as AddressInfo
  const close = () => {
    server.close()
    server.closeIdleConnections()
  }
  return { url: `http://127.0.0.1:${actual}${RETURN_PATH}`, answer, close }
}

const RETURN_PATH = '/callback'

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', error => {
      const words = `Cannot listen on 127.0.0.1:${port} for the browser: ${messageOf(error)}. Set \`oauth.redirectPort\` to a free port.`
      reject(new AgentError('invalid-argument', words, { cause: error }))
    })
    server.listen(port, '127.0.0.1', resolve)
  })
}

/** The code in the address that the browser was sent back to. */
function readReturn(address: string, state: string): ReturnedAnswer {
  const base = 'http://127.0.0.1'
  const params = URL.canParse(address, base) ? new URL(address, base).searchParams : new URLSearchParams()
  if (params.get('state') !== state)
    throw new AgentError('invalid-argument', 'This address does not belong to the login that is waiting.')
  const error = params.get('error')
  if (error !== null)
    throw new AgentError(
      'provider-auth',
      `The login was refused: ${[error, params.get('error_description')].filter(Boolean).join(': ')}.`,
    )
  const code = params.get('code')
  if (code === null) throw new AgentError('invalid-argument', 'This address has no code.')
  return { code, issuer: params.get('iss') ?? undefined }
}

/** Tokens are not sent in clear text, except on this machine. */
function requireEncryption(server: string, address: string): void {
  const { protocol, hostname } = new URL(address)
  if (protocol === 'https:' || ['localhost', '127.0.0.1', '[::1]'].includes(hostname)) return
  throw new AgentError(
    'invalid-argument',
    `MCP server "${server}": a login needs https, and ${address} is not encrypted.`,
  )
}

async function named<Result>(server: string, step: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof AgentError) throw error
    const words = `The login to MCP server "${server}" could not be ${step}: ${messageOf(error)}`
    throw new AgentError('provider-auth', words, { cause: error })
  }
}

function stopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}
