/** A route of the native API: one description validates requests and generates the OpenAPI document. */
import type { OpenAPIHono, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { defined } from '../../base/defined.js'
import { AgentError } from '../../errors.js'
import { readClientJson } from '../client-json.js'
import type { ServerEnv } from '../server-context.js'
import { Problem } from './schemas.js'

export type ApiApp = OpenAPIHono<ServerEnv>

type AnyObject = z.ZodObject

interface Answer {
  status: number
  schema?: z.ZodType
  description: string
  mediaType?: string
}

export interface RouteFacts<P extends AnyObject, Q extends AnyObject, B extends AnyObject> {
  method: 'get' | 'post' | 'patch' | 'delete'
  /** With `{name}` for parameters. */
  path: string
  summary: string
  params?: P
  query?: Q
  /** The body, which is JSON. */
  body?: B
  /** The body may be left out; then it is `{}`. */
  bodyOptional?: boolean
  answer: Answer
  /** Other successful answers, and request headers: for the OpenAPI document only. */
  otherAnswers?: Readonly<Record<number, string | Omit<Answer, 'status'>>>
  headers?: AnyObject
}

/** The validated input of a handler. */
export interface RouteInput<P extends AnyObject, Q extends AnyObject, B extends AnyObject> {
  params: z.infer<P>
  query: z.infer<Q>
  body: z.infer<B>
}

type Handler<P extends AnyObject, Q extends AnyObject, B extends AnyObject> = (
  c: Context<ServerEnv>,
  input: RouteInput<P, Q, B>,
) => Promise<Response> | Response

export function addRoute<P extends AnyObject, Q extends AnyObject, B extends AnyObject>(
  api: ApiApp,
  facts: RouteFacts<P, Q, B>,
  handler: Handler<P, Q, B>,
): void {
  api.openAPIRegistry.registerPath(describe(facts))
  api.on(facts.method.toUpperCase(), facts.path.replaceAll(/\{(\w+)\}/g, ':$1'), async c => {
    const params = check('path', facts.params, c.req.param())
    const query = check('query', facts.query, c.req.query())
    const body = check(
      'body',
      facts.body,
      facts.body ? await readClientJson(c, { optional: facts.bodyOptional }) : {},
    )
    // Handlers of routes without a schema do not read that part.
    return handler(c, { params, query, body } as RouteInput<P, Q, B>)
  })
}

function check(where: string, schema: AnyObject | undefined, value: unknown): unknown {
  if (!schema) return {}
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const issues = result.error.issues.slice(0, 5)
  const words = issues.map(({ path, message }) => `${[where, ...path].join('.')}: ${message}`)
  throw new AgentError('invalid-argument', `The request is not valid: ${words.join('; ')}.`)
}

function describe<P extends AnyObject, Q extends AnyObject, B extends AnyObject>(facts: RouteFacts<P, Q, B>) {
  const { method, path, summary, params, query, body, bodyOptional, answer, headers } = facts
  return {
    method,
    path,
    summary,
    operationId: operationId(method, path),
    request: {
      ...defined({ headers, params, query }),
      ...(body
        ? { body: { required: !bodyOptional, content: { 'application/json': { schema: body } } } }
        : {}),
    },
    responses: {
      [answer.status]: described(answer),
      ...Object.fromEntries(
        Object.entries(facts.otherAnswers ?? {}).map(([status, other]) => [status, described(other)]),
      ),
      default: { description: 'A problem', content: { 'application/problem+json': { schema: Problem } } },
    },
  }
}

function described(answer: string | Omit<Answer, 'status'>) {
  if (typeof answer === 'string') return { description: answer }
  const { description, schema, mediaType = 'application/json' } = answer
  return { description, ...(schema ? { content: { [mediaType]: { schema } } } : {}) }
}

/** The operation's name in generated clients: `get /api/runs/{runId}/events` is `getRunsByRunIdEvents`. */
function operationId(method: string, path: string): string {
  const words = path.split('/').slice(2)
  const names = words.map(word => (word.startsWith('{') ? `By${capital(word.slice(1, -1))}` : capital(word)))
  return `${method}${names.join('')}`
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}
