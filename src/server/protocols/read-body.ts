import type { Context } from 'hono'
import type { z } from 'zod'
import { AgentError } from '../../errors.js'
import type { RunInput } from '../../runtime/runtime.js'
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

/** A part of a message, as a run takes it. */
export type InputPart = NonNullable<RunInput['parts']>[number]

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*;base64,([A-Za-z0-9+/]*={0,2})$/

interface Media {
  url: string
  /** What it is, when the URL does not say. */
  mimeType: string
  name?: string | undefined
  /** The field to blame. */
  field: string
}

/** A file that came as a data URL, or one that the model's provider fetches from where it is. */
export function mediaPart({ url, mimeType, name, field }: Media): InputPart {
  const named = name === undefined ? {} : { displayName: name }
  if (url.startsWith('data:')) {
    const [, type = mimeType, data = ''] = DATA_URL.exec(url) ?? []
    if (data === '') throw badField(field, `${field} is a data URL that cannot be read: base64 is needed.`)
    return { inlineData: { mimeType: type, data, ...named } }
  }
  if (!/^https?:\/\//i.test(url)) throw badField(field, `${field} must be a data: or an https: URL.`)
  return { fileData: { fileUri: url, mimeType: typeByEnding(url) ?? mimeType, ...named } }
}

/** Some providers want to know what they are about to fetch. */
function typeByEnding(url: string): string | undefined {
  const ending = /\.([a-z0-9]+)$/i.exec(url.split(/[?#]/, 1)[0] ?? '')?.[1]?.toLowerCase()
  return TYPES.get(ending ?? '')
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['pdf', 'application/pdf'],
])
