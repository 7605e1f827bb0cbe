import type { Context } from 'hono'
import type { z } from 'zod'
import { isBase64 } from '../../base/base64.js'
import { defined } from '../../base/defined.js'
import { isRecord } from '../../base/is-record.js'
import { createPause } from '../../base/pause.js'
import { AgentError } from '../../errors.js'
import type { RunInput } from '../../runtime/runtime.js'
import { readClientJson } from '../client-json.js'
import { checkCount } from '../refusal.js'
import type { ServerEnv, ServerLimits } from '../server-context.js'

/** The body of a request, checked. An error names the path of the field, also in `details.field`. */
export async function readBody<S extends z.ZodType>(c: Context<ServerEnv>, schema: S): Promise<z.infer<S>> {
  return checked(schema, await readClientJson(c, { optional: true }))
}

/** A value, checked. An error names the path of the field. */
export function checked<S extends z.ZodType>(schema: S, value: unknown, place = ''): z.infer<S> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const field = [...(place === '' ? [] : [place]), ...(issue?.path ?? []).map(String)].join('.')
  const message = `The request is not valid: ${field === '' ? 'the body' : field}: ${issue?.message}.`
  throw new AgentError('invalid-argument', message, { details: { field } })
}

/**
 * The messages of a request, checked one by one, so that other requests are served meanwhile. Refuses more messages
 * than the limit, and more parts in one of them.
 */
export async function checkMessages<S extends z.ZodType>(
  messages: readonly unknown[],
  schema: S,
  limits: ServerLimits,
  field = 'messages',
): Promise<z.infer<S>[]> {
  checkCount({ limit: 'maxMessages', most: limits.maxMessages, sent: messages.length, field })
  const pause = createPause()
  const found: z.infer<S>[] = []
  for (const [index, message] of messages.entries()) {
    const place = `${field}.${index}`
    checkParts(message, place, limits)
    found.push(checked(schema, message, place))
    await pause()
  }
  return found
}

/** Refuses a message with more parts than the limit, whichever field holds them. */
export function checkParts(message: unknown, place: string, { maxParts: most }: ServerLimits): void {
  if (!isRecord(message)) return
  for (const name of ['content', 'parts', 'tool_calls']) {
    const list = message[name]
    if (!Array.isArray(list)) continue
    checkCount({ limit: 'maxParts', most, sent: list.length, field: `${place}.${name}` })
  }
}

/** The error of a request with an invalid field. */
export function badField(field: string, message: string): AgentError {
  return new AgentError('invalid-argument', message, { details: { field } })
}

/** A part of a message, as `runtime.run` accepts it. */
export type InputPart = NonNullable<RunInput['parts']>[number]

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*;base64,/

interface Media {
  url: string
  /** Used when the URL does not contain a type. */
  mimeType: string
  name?: string | undefined
  /** The field that errors name. */
  field: string
}

/** A file as a data URL, or as a URL that the model's provider fetches. */
export function mediaPart({ url, mimeType, name, field }: Media): InputPart {
  const named = defined({ displayName: name })
  if (url.startsWith('data:')) {
    const [start = url, type = mimeType] = DATA_URL.exec(url) ?? []
    const data = url.slice(start.length)
    if (data === '' || !isBase64(data))
      throw badField(field, `${field} is a data URL that cannot be read: it must be base64.`)
    return { inlineData: { mimeType: type, data, ...named } }
  }
  if (!/^https?:\/\//i.test(url)) throw badField(field, `${field} must be a data: or an https: URL.`)
  return { fileData: { fileUri: url, mimeType: typeByEnding(url) ?? mimeType, ...named } }
}

/** Some providers require the type of a file before they fetch it. */
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
