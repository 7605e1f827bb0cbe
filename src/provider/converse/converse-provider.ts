/** The models of Bedrock that are not Claude, by the Converse API through AWS's own SDK, loaded at the first request. */
import type { BedrockRuntimeClient, ConverseCommandInput } from '@aws-sdk/client-bedrock-runtime'
import { defined } from '../../base/defined.js'
import { AgentError, messageOf } from '../../errors.js'
import { loadOptional } from '../../packages.js'
import type { HttpFailure } from '../error-facts.js'
import type { ModelInfo } from '../provider.js'
import { providerFetch } from '../provider-fetch.js'
import type { ProviderSettings } from '../provider-settings.js'
import { SdkProvider } from '../sdk-provider.js'
import type { Wire } from '../stream-answer.js'
import { neededValue, readVariable } from '../vendor-row.js'
import {
  type ConverseAnswerWire,
  type ConverseEventWire,
  eventsOf,
  fromConverseStream,
} from './from-converse-stream.js'
import {
  type ConverseBlockWire,
  type ConverseRequestWire,
  converseAbilities,
  toConverseRequest,
} from './to-converse-request.js'

type Sdk = typeof import('@aws-sdk/client-bedrock-runtime')

interface Connection {
  sdk: Sdk
  client: BedrockRuntimeClient
}

/** Sends requests to Converse: streamed, or whole for models that call tools only then. */
export class ConverseProvider extends SdkProvider<Connection> {
  /** Models that have refused to stream with tools. */
  readonly #whole = new Set<string>()

  constructor(settings: ProviderSettings) {
    super(settings, settings.type)
  }

  protected wire(model: string): Wire<ConverseRequestWire, ConverseEventWire> {
    const info = this.describeModel(model)
    return {
      vendor: 'bedrock',
      profile: this.profileOf(info),
      info,
      abilities: converseAbilities,
      toBody: toConverseRequest,
      open: (body, signal) => this.#open(body, signal),
      read: fromConverseStream,
    }
  }

  async #open(body: ConverseRequestWire, signal: AbortSignal): Promise<AsyncIterable<ConverseEventWire>> {
    const connection = await this.connect(body.modelId)
    const isWhole = body.toolConfig !== undefined && this.#whole.has(body.modelId)
    try {
      return isWhole ? await sendWhole(connection, body, signal) : await sendStream(connection, body, signal)
    } catch (error) {
      if (isWhole || !/support(s)? tool use in streaming mode/.test(messageOf(error)))
        throw toHttpError(error)
      this.#whole.add(body.modelId)
      return this.#open(body, signal)
    }
  }

  /** A list needs another of AWS's SDKs; a provider for Bedrock is asked for none. */
  protected async *servedModels(): AsyncGenerator<ModelInfo> {}

  protected async newClient(apiKey: string | undefined): Promise<Connection> {
    const sdk = await loadOptional('bedrock', () => import('@aws-sdk/client-bedrock-runtime'))
    const { env, baseUrl, headers } = this.settings
    const [accessKeyId, secretAccessKey, sessionToken, profile] = [
      'AWS_ACCESS_KEY_ID',
      'AWS_SECRET_ACCESS_KEY',
      'AWS_SESSION_TOKEN',
      'AWS_PROFILE',
    ].map(name => readVariable(env, [name]))
    const hasAccount = accessKeyId !== undefined && secretAccessKey !== undefined
    const client = new sdk.BedrockRuntimeClient({
      ...defined({
        region: neededValue(this.row, 'region', env, this.settings),
        endpoint: baseUrl ?? readVariable(env, [this.row?.baseUrlVariable]),
        profile,
      }),
      ...(apiKey === undefined ? {} : { token: { token: apiKey }, authSchemePreference: ['httpBearerAuth'] }),
      ...(apiKey === undefined && hasAccount
        ? { credentials: { accessKeyId, secretAccessKey, ...defined({ sessionToken }) } }
        : {}),
      maxAttempts: 1,
      requestHandler: {
        handle: (request: HttpRequest, options?: { abortSignal?: unknown }) =>
          handle(request, headers, options?.abortSignal),
      },
    })
    return { sdk, client }
  }
}

async function sendStream(
  { sdk, client }: Connection,
  body: ConverseRequestWire,
  abortSignal: AbortSignal,
): Promise<AsyncIterable<ConverseEventWire>> {
  const { stream } = await client.send(new sdk.ConverseStreamCommand(withBytes(body)), { abortSignal })
  if (stream === undefined)
    throw new AgentError('provider-stream', 'The answer has no stream.', { retryable: true })
  return withHttpErrors(stream as AsyncIterable<ConverseEventWire>)
}

async function sendWhole(
  { sdk, client }: Connection,
  body: ConverseRequestWire,
  abortSignal: AbortSignal,
): Promise<AsyncIterable<ConverseEventWire>> {
  const answer = await client.send(new sdk.ConverseCommand(withBytes(body)), { abortSignal })
  return eventsOf(answer as ConverseAnswerWire)
}

/** An exception that comes as an event is thrown where it comes. */
async function* withHttpErrors(events: AsyncIterable<ConverseEventWire>): AsyncGenerator<ConverseEventWire> {
  try {
    for await (const event of events) {
      const failure = Object.entries(event).find(([name]) => name.endsWith('Exception'))
      if (failure) throw failure[1]
      yield event
    }
  } catch (error) {
    throw toHttpError(error)
  }
}

/** AWS's SDK takes bytes and writes base64. */
function withBytes(body: ConverseRequestWire): ConverseCommandInput {
  const decode = (block: ConverseBlockWire): object => {
    for (const kind of ['image', 'document', 'video'] as const) {
      const file = block[kind]
      if (file) return { [kind]: { ...file, source: { bytes: Buffer.from(file.source.bytes, 'base64') } } }
    }
    return block
  }
  const messages = body.messages.map(({ role, content }) => ({ role, content: content.map(decode) }))
  // The SDK's types are unions with a member for what they do not know.
  return { ...body, messages } as unknown as ConverseCommandInput
}

/** What of an error the SDK hides in fields of its own. */
function toHttpError(error: unknown): unknown {
  // An exception of the service; others are those of the network or of the search for credentials.
  if (!(error instanceof Error) || !('$fault' in error)) return error
  const { $metadata, $response } = error as AwsException
  const { httpStatusCode: status = 0, requestId } = $metadata ?? {}
  const failure: HttpFailure = {
    // An exception within a stream has the status of the stream.
    ...(status >= 400 ? { status } : {}),
    code: error.name,
    headers: $response?.headers,
    ...(requestId === undefined ? {} : { requestID: requestId }),
  }
  return Object.assign(new AwsError(error.message, { cause: error }), failure)
}

interface AwsException extends Error {
  $metadata?: { httpStatusCode?: number; requestId?: string }
  $response?: { headers?: unknown }
}

class AwsError extends Error {}

interface HttpRequest {
  method: string
  protocol: string
  hostname: string
  port?: number | undefined
  path: string
  query?: Record<string, unknown>
  headers: Record<string, string>
  body?: unknown
}

/** AWS's SDK brings a client of its own; with Lango's, limits, timeouts and errors are those of other providers. */
async function handle(
  { method, protocol, hostname, port, path, headers, body }: HttpRequest,
  more: Readonly<Record<string, string>>,
  signal: unknown,
) {
  const url = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`
  const { host: _host, 'content-length': _length, ...sent } = headers
  const response = await providerFetch(
    url,
    {
      method,
      headers: { ...sent, ...more },
      ...(body === undefined ? {} : { body: body as string }),
      ...(signal instanceof AbortSignal ? { signal } : {}),
    },
    { whole: path.endsWith('/converse') },
  )
  const { Readable } = await import('node:stream')
  const stream = response.body
    ? Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0])
    : Readable.from([])
  return {
    response: {
      statusCode: response.status,
      headers: Object.fromEntries(response.headers),
      body: stream,
    },
  }
}
