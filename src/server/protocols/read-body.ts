import type { Context } from 'hono'
import type { z } from 'zod'
import { AgentError } from '../../errors.js'
import { clientJson } from '../routes/client-state.js'
import type { ServerEnv } from '../server-context.js'

/** The body of a request, checked. What is wrong is said with the path of the field, also in `details.field`. */
export async function readBody<S extends z.ZodType>(c: Context<ServerEnv>, schema: S): Promise<z.infer<S>> {
  const result = schema.safeParse(await readJson(c))
  if (result.success) return result.data
  const [issue] = result.error.issues
  const field = issue?.path.map(String).join('.') ?? ''
  const message = `The request is not valid: ${field === '' ? 'the body' : field}: ${issue?.message}.`
  throw new AgentError('invalid-argument', message, { details: { field } })
}

async function readJson(c: Context<ServerEnv>): Promise<unknown> {
  const text = await c.req.text()
  return text === '' ? {} : clientJson(text)
}

/** A request that cannot be done as it was asked, with the field that is to blame. */
export function badField(field: string, message: string): AgentError {
  return new AgentError('invalid-argument', message, { details: { field } })
}
