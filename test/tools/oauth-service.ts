/** An MCP server that wants a login, with the authorization server of the official SDK: both on one loopback port. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { InvalidGrantError, InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js'
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js'
import type { OAuthServerProvider } from '@modelcontextprotocol/sdk/server/auth/provider.js'
import {
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthRouter,
} from '@modelcontextprotocol/sdk/server/auth/router.js'
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { OAuthClientInformationFull, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import { onTestFinished } from 'vitest'
import { z } from 'zod'

interface Grant {
  clientId: string
  scopes: string[]
}

/** Refresh tokens are used once; a second use revokes all tokens of their client, as RFC 9700 asks. */
export class Authorization implements OAuthServerProvider {
  readonly clients = new Map<string, OAuthClientInformationFull>()
  readonly codes = new Map<string, Grant & { challenge: string }>()
  readonly access = new Map<string, Grant>()
  readonly refresh = new Map<string, Grant>()
  readonly used = new Set<string>()
  /** Requests of the authorization page. */
  readonly asked: { scopes: string[]; redirectUri: string }[] = []
  refreshes = 0
  reuses = 0
  revoked: string[] = []
  /** What the person does on the page. */
  decision: 'allow' | 'deny' = 'allow'
  /** Added to the address that the browser is sent back to. */
  extra: Record<string, string> = {}

  get clientsStore() {
    return {
      getClient: (id: string) => this.clients.get(id),
      registerClient: (client: OAuthClientInformationFull) => {
        this.clients.set(client.client_id, client)
        return client
      },
    }
  }

  authorize: OAuthServerProvider['authorize'] = async (client, params, response) => {
    const { redirectUri, codeChallenge: challenge, scopes = [], state = '' } = params
    this.asked.push({ scopes, redirectUri })
    const code = randomUUID()
    this.codes.set(code, { challenge, clientId: client.client_id, scopes })
    const answer: Record<string, string> =
      this.decision === 'allow' ? { code } : { error: 'access_denied', error_description: 'Not today' }
    const target = new URL(redirectUri)
    for (const [name, value] of Object.entries({ ...answer, state, ...this.extra }))
      target.searchParams.set(name, value)
    response.redirect(target.href)
  }

  challengeForAuthorizationCode: OAuthServerProvider['challengeForAuthorizationCode'] = async (_, code) =>
    this.codes.get(code)?.challenge ?? ''

  exchangeAuthorizationCode: OAuthServerProvider['exchangeAuthorizationCode'] = async (_, code) => {
    const grant = this.codes.get(code)
    this.codes.delete(code)
    if (!grant) throw new InvalidGrantError('unknown code')
    return this.issue(grant)
  }

  exchangeRefreshToken: OAuthServerProvider['exchangeRefreshToken'] = async (client, token) => {
    const grant = this.refresh.get(token)
    if (this.used.has(token)) {
      this.reuses += 1
      this.forgetAll()
    }
    if (!grant || grant.clientId !== client.client_id) throw new InvalidGrantError('unknown refresh token')
    this.refresh.delete(token)
    this.used.add(token)
    this.refreshes += 1
    return this.issue(grant)
  }

  verifyAccessToken: OAuthServerProvider['verifyAccessToken'] = async token => {
    const grant = this.access.get(token)
    if (!grant) throw new InvalidTokenError('unknown token')
    return { token, clientId: grant.clientId, scopes: grant.scopes, expiresAt: Date.now() / 1000 + 60 }
  }

  revokeToken: NonNullable<OAuthServerProvider['revokeToken']> = async (_, { token }) => {
    this.revoked.push(token)
    this.forgetAll()
  }

  issue(grant: Grant): OAuthTokens {
    const tokens = { access_token: `access-${randomUUID()}`, refresh_token: `refresh-${randomUUID()}` }
    this.access.set(tokens.access_token, grant)
    this.refresh.set(tokens.refresh_token, grant)
    return { ...tokens, token_type: 'bearer', expires_in: 3600, scope: grant.scopes.join(' ') }
  }

  /** The access tokens end; they can be renewed. */
  expire(): void {
    this.access.clear()
  }

  forgetAll(): void {
    this.access.clear()
    this.refresh.clear()
  }
}

export interface OAuthService {
  url: string
  authorization: Authorization
  /** Whether the token endpoint answers with 503. */
  tokensDown: boolean
  /** Calls that the tool has executed. */
  calls: number
}

export async function startOAuthService(scopes: string[] = []): Promise<OAuthService> {
  const authorization = new Authorization()
  const http = createServer()
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const service: OAuthService = { url: `${origin}/mcp`, authorization, tokensDown: false, calls: 0 }
  const resourceServerUrl = new URL(service.url)
  const app = createMcpExpressApp()
  app.use('/token', (_request: unknown, response: ServerResponse, next: () => void) =>
    service.tokensDown ? void response.writeHead(503).end('down') : next(),
  )
  const free = { rateLimit: false as const }
  app.use(
    mcpAuthRouter({
      provider: authorization,
      issuerUrl: new URL(origin),
      resourceServerUrl,
      ...(scopes.length > 0 ? { scopesSupported: scopes } : {}),
      authorizationOptions: free,
      clientRegistrationOptions: free,
      tokenOptions: free,
      revocationOptions: free,
    }),
  )
  const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(resourceServerUrl)
  app.use('/mcp', requireBearerAuth({ verifier: authorization, resourceMetadataUrl }))
  app.all('/mcp', async (request: IncomingMessage & { body: unknown }, response: ServerResponse) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const server = new McpServer({ name: 'guarded', version: '1.0.0' })
    const described = { description: 'Echoes.', inputSchema: { word: z.string() } }
    server.registerTool('echo', described, ({ word }) => {
      service.calls += 1
      return { content: [{ type: 'text', text: word }] }
    })
    const transport = new StreamableHTTPServerTransport({})
    // The SDK's types were not written for exactOptionalPropertyTypes.
    await server.connect(transport as Parameters<McpServer['connect']>[0])
    await transport.handleRequest(request, response, request.body)
  })
  http.on('request', app)
  onTestFinished(async () => {
    http.closeAllConnections()
    await new Promise(resolve => http.close(resolve))
  })
  return service
}
