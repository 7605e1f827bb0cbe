import { z } from 'zod'
import { defineTool, type Tool } from '../tool.js'
import { type GuardedResponse, guardedGet, type Lookup } from './guarded-get.js'
import { htmlToText } from './html-to-text.js'
import { addressPolicy } from './private-address.js'

export interface FetchUrlOptions {
  /** Addresses outside the public internet: none (the default), all, or a list of addresses and ranges. */
  allowPrivateNetwork?: boolean | readonly string[] | undefined
  /** For the whole call, redirects included. Default 30,000. */
  timeoutMs?: number | undefined
  /** Default 5,000,000. What is beyond is left out. */
  maxBytes?: number | undefined
  /** Resolves names. Default: the system's resolver. */
  lookup?: Lookup | undefined
}

/** Fetches a page of the public web as text. */
export function fetchUrlTool(options: FetchUrlOptions = {}): Tool {
  const isAllowed = addressPolicy(options.allowPrivateNetwork ?? false)
  const { timeoutMs = 30_000, maxBytes = 5_000_000, lookup } = options
  return defineTool({
    name: 'fetch_url',
    description:
      'Fetches a web page or a text from a public http or https address. Pages come as readable text. Long texts come in pieces: go on with offset set to nextOffset.',
    parameters: z.object({
      url: z.string().min(1).max(8_000),
      offset: z.int().min(0).default(0).describe('The character of the text to begin with.'),
    }),
    effect: 'read',
    timeoutMs: timeoutMs + 5_000,
    execute: async ({ url, offset }, { signal }) => {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
      const response = await guardedGet(url, { isAllowed, lookup, maxBytes, signal: limited })
      return describe(response, offset)
    },
  })
}

/** Less than what a result may have, whatever the script. */
const PIECE_CHARACTERS = 16_000

function describe(response: GuardedResponse, offset: number) {
  const { url, status, contentType, isCut } = response
  const facts = { url, status, contentType }
  if (!isReadable(response)) {
    return { ...facts, bytes: response.body.length, note: 'This is not text and cannot be read.' }
  }
  const text = textOf(response)
  const end = Math.min(text.length, offset + PIECE_CHARACTERS)
  return {
    ...facts,
    text: text.slice(offset, end),
    totalCharacters: text.length,
    ...(end < text.length ? { nextOffset: end } : {}),
    ...(isCut ? { note: `Only the first ${response.body.length} bytes were read.` } : {}),
  }
}

const TEXT_TYPE =
  /^(text\/|application\/(.*[+])?(json|xml|javascript|yaml|x-ndjson|x-yaml)$|image\/svg[+]xml$)/

function isReadable({ contentType, body }: GuardedResponse): boolean {
  const [type = ''] = contentType.split(';')
  return (type === '' || TEXT_TYPE.test(type.trim().toLowerCase())) && !body.subarray(0, 8_192).includes(0)
}

function textOf({ contentType, body }: GuardedResponse): string {
  const declared = /charset=["']?([\w-]+)/i
  const start = body.toString('latin1', 0, 2_048)
  const isHtml = /html/i.test(contentType) || (contentType === '' && /^\s*<(!doctype html|html)/i.test(start))
  const charset = declared.exec(contentType)?.[1] ?? (isHtml ? declared.exec(start)?.[1] : undefined)
  const text = decode(body, charset)
  return isHtml ? htmlToText(text) : text
}

function decode(body: Uint8Array, charset: string | undefined): string {
  try {
    return new TextDecoder(charset ?? 'utf-8').decode(body)
  } catch {
    return new TextDecoder('utf-8').decode(body)
  }
}
