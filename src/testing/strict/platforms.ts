/**
 * Platforms that serve a vendor's models under their own addresses and accounts. The rules and the answers stay the
 * vendor's; routes, keys, errors of the platform itself and the way of streaming are the platform's.
 */
import { AgentError } from '../../errors.js'
import { awsError, awsFault, awsKey } from './converse/converse-family.js'
import { refuse } from './converse/converse-rules.js'
import { CHUNK_STREAM } from './event-stream.js'
import type { Family, HttpError, PlainRequest, Route } from './family.js'
import { isObject, type JsonObject, listOf, objectOf, textOf } from './json.js'
import {
  PROFILE_FACTS,
  type ProfileFacts,
  STRICT_PLATFORMS,
  type StrictPlatform,
  type StrictProfile,
} from './profile.js'

type Make = (family: Family) => Family

const PLATFORMS: Readonly<Record<StrictPlatform, Partial<Record<ProfileFacts['family'], Make>>>> = {
  azure: { 'openai-chat': onAzure, 'openai-responses': onAzure },
  bedrock: { anthropic: claudeOnBedrock, converse: family => family },
  vertex: { gemini: geminiOnVertex, anthropic: claudeOnVertex },
}

/** A family as a platform serves it. */
export function onPlatform(family: Family, profile: StrictProfile, platform: StrictPlatform): Family {
  const make = PLATFORMS[platform]?.[PROFILE_FACTS[profile].family]
  if (make) return make(family)
  const known = STRICT_PLATFORMS.join(', ')
  throw new AgentError(
    'invalid-argument',
    `The platform '${platform}' does not serve the profile '${profile}'. Platforms: ${known}; azure serves OpenAI's profiles, bedrock Anthropic's and converse, vertex Gemini's and Anthropic's.`,
  )
}

/** The v1 API, and dated versions with the deployment in the path. */
function onAzure(family: Family): Family {
  const missing = azureError(404, 'DeploymentNotFound', DEPLOYMENT_NOT_FOUND)
  return {
    ...family,
    baseUrl: origin => origin,
    route: (method, path, query) => {
      const dated = /^\/openai\/deployments\/([^/]+)(\/chat\/completions)$/.exec(path)
      if (dated) {
        const route = query.has('api-version') ? family.route(method, dated[2] ?? '', query) : undefined
        return route && { ...route, model: decodeURIComponent(dated[1] ?? '') }
      }
      if (path.startsWith('/openai/v1/')) return family.route(method, path, query)
      // Responses of the dated API name the deployment in the body, as those of the v1 API do.
      const isResponses = path === '/openai/responses' && query.has('api-version')
      return isResponses ? family.route(method, path, query) : undefined
    },
    keyOf: headers => headers['api-key'] ?? /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1],
    unknownModel: () => missing,
    fault: (fault, context) =>
      fault.kind === 'auth' ? azureError(401, '401', ACCESS_DENIED) : family.fault(fault, context),
    notFound: () => azureError(404, '404', 'Resource not found'),
  }
}

const DEPLOYMENT_NOT_FOUND =
  'The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.'
const ACCESS_DENIED =
  'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.'

function azureError(status: number, code: string, message: string): HttpError {
  return { status, body: { error: { code, message } } }
}

/** InvokeModel: the model in the path, the version and the betas in the body. */
function claudeOnBedrock(family: Family): Family {
  return {
    ...family,
    route: (method, path) => {
      const found = /^\/model\/([^/]+)\/(invoke|invoke-with-response-stream)$/.exec(path)
      if (method !== 'POST' || found === null) return undefined
      return { kind: 'generate', model: decodeURIComponent(found[1] ?? ''), stream: found[2] !== 'invoke' }
    },
    keyOf: awsKey,
    unwrap: (body, route) => {
      const extra = ['model', 'stream', 'betas', 'service_tier'].find(key => key in body)
      if (extra !== undefined)
        return {
          body,
          violation: refuse(
            'P1',
            `#: extraneous key [${extra}] is not permitted, please reformat your input and try again.`,
          ),
        }
      return plainClaude(body, route, {
        oldVersion: 'bedrock-2023-05-31',
        betas: listOf(body.anthropic_beta),
      })
    },
    framing: CHUNK_STREAM,
    refusal: violation => awsError(violation.status, 'ValidationException', violation.message),
    fault: awsFault,
    streamError: () =>
      'event: serviceUnavailableException\ndata: {"message":"Bedrock is unable to process your request."}\n\n',
    unknownModel: () => awsError(400, 'ValidationException', 'The provided model identifier is invalid.'),
    notFound: () =>
      awsError(404, 'UnknownOperationException', 'The requested operation is not recognized by the service.'),
  }
}

/** rawPredict: as on Bedrock, with betas in the header and server-sent events. */
function claudeOnVertex(family: Family): Family {
  return {
    ...family,
    route: (method, path) => {
      const found = vertexPath(path, 'anthropic')
      if (method !== 'POST' || found === undefined) return undefined
      if (found.model === 'count-tokens') return { kind: 'count-tokens' }
      const stream = { rawPredict: false, streamRawPredict: true }[found.action]
      return stream === undefined ? undefined : { kind: 'generate', model: found.model, stream }
    },
    keyOf: bearer,
    unwrap: (body, route, headers) => {
      if ('model' in body && route.kind === 'generate')
        return { body, violation: refuse('P1', 'model: Extra inputs are not permitted') }
      const betas = textOf(headers['anthropic-beta']).split(',').filter(Boolean)
      const { stream: _stream, ...rest } = body
      return plainClaude(rest, route, { oldVersion: 'vertex-2023-10-16', betas })
    },
    ...GOOGLE_ERRORS(family),
  }
}

function geminiOnVertex(family: Family): Family {
  return {
    ...family,
    route: (method, path, query) =>
      vertexPath(path, 'google') === undefined ? undefined : family.route(method, path, query),
    keyOf: bearer,
    ...GOOGLE_ERRORS(family),
  }
}

function vertexPath(path: string, publisher: string): { model: string; action: string } | undefined {
  const found =
    /^\/v1(?:beta1)?\/projects\/([^/]+)\/locations\/([^/]+)\/publishers\/(\w+)\/models\/([^/:]+):(\w+)$/.exec(
      path,
    )
  if (found === null || found[3] !== publisher) return undefined
  return { model: decodeURIComponent(found[4] ?? ''), action: found[5] ?? '' }
}

function bearer(headers: Readonly<Record<string, string>>): string | undefined {
  return /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
}

/** What Google says before a vendor's server is reached. */
const GOOGLE_ERRORS = (family: Family): Pick<Family, 'fault' | 'notFound' | 'unknownModel'> => ({
  fault: (fault, context) =>
    fault.kind === 'auth'
      ? googleError(
          401,
          'UNAUTHENTICATED',
          'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.',
        )
      : family.fault(fault, context),
  notFound: () => googleError(404, 'NOT_FOUND', 'The requested URL was not found on this server.'),
  unknownModel: model =>
    googleError(
      404,
      'NOT_FOUND',
      `Publisher Model \`projects/p/locations/l/publishers/x/models/${model}\` was not found or your project does not have access to it. Please ensure you are using a valid model version.`,
    ),
})

function googleError(code: number, status: string, message: string): HttpError {
  return { status: code, body: { error: { code, message, status } } }
}

/** Anthropic's own request again. Models of the platforms' earlier days know no newer version than theirs. */
function plainClaude(
  wrapped: JsonObject,
  { model = '', stream = false }: Route,
  { oldVersion, betas }: { oldVersion: string; betas: readonly unknown[] },
): PlainRequest {
  const { anthropic_version: version, anthropic_beta: _betas, ...rest } = wrapped
  if (version === undefined)
    return { body: wrapped, violation: refuse('P1', '#: required key [anthropic_version] not found') }
  const isOld = /claude-(3|[a-z]+-4(-[0-6])?(?!\d|-[789]))/.test(model)
  if (version !== oldVersion && (isOld || version !== NEW_VERSION)) {
    return {
      body: wrapped,
      violation: refuse('P1', `anthropic_version: ${String(version)} is not supported for ${model}`),
    }
  }
  const remote = blocksIn(rest).find(({ source }) => objectOf(source).type === 'url')
  if (remote) return { body: wrapped, violation: refuse('P1', 'messages: URL sources are not supported') }
  return {
    body: { ...rest, model, stream },
    headers: {
      'anthropic-version': version === oldVersion ? '2023-06-01' : NEW_VERSION,
      ...(betas.length > 0 ? { 'anthropic-beta': betas.join(',') } : {}),
    },
  }
}

const NEW_VERSION = '2026-10-21'

function blocksIn(body: JsonObject): JsonObject[] {
  return listOf(body.messages).flatMap(message => {
    const { content } = objectOf(message)
    return listOf(content).filter(isObject)
  })
}
