import { lookup as systemLookup } from 'node:dns'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { own } from '../base/own.js'
import { AgentError, messageOf } from '../errors.js'

/** Resolves a name to all of its addresses. */
export type Lookup = (hostname: string) => Promise<readonly { address: string; family: number }[]>

export interface GuardedGetOptions {
  isAllowed: (address: string) => boolean
  lookup?: Lookup | undefined
  maxBytes: number
  signal: AbortSignal
}

export interface GuardedResponse {
  /** The last address of the chain of redirects. */
  url: string
  status: number
  contentType: string
  body: Buffer
  /** Whether the body was longer than the limit. */
  isCut: boolean
}

/**
 * A GET that connects only to allowed addresses. The name is resolved here, every address of it is checked, and
 * the connection goes to an address that was checked: a name that resolves differently the next time gains
 * nothing. Redirects are followed here too, each checked like the first address.
 */
export async function guardedGet(address: string, options: GuardedGetOptions): Promise<GuardedResponse> {
  let url = parse(address)
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await send(url, options)
    const { statusCode: status = 0, headers } = response
    const next = REDIRECTS.has(status) ? headers.location : undefined
    if (next === undefined) {
      const { body, isCut } = await readBody(response, options.maxBytes)
      return { url: url.href, status, contentType: headers['content-type'] ?? '', body, isCut }
    }
    response.destroy()
    url = parse(next, url)
  }
  throw refusal(`"${address}" redirects more than ${MAX_REDIRECTS} times.`)
}

const MAX_REDIRECTS = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])

function parse(address: string, base?: URL): URL {
  const url = URL.canParse(address, base?.href) ? new URL(address, base) : undefined
  if (!url) throw refusal(`"${address}" is not a URL. Give a whole one, such as https://example.com/page.`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refusal(`"${url.protocol}" is not allowed: only http and https are.`)
  }
  if (url.username !== '' || url.password !== '')
    throw refusal('A URL with a user name or password is not allowed.')
  return url
}

function send(url: URL, options: GuardedGetOptions): Promise<IncomingMessage> {
  const hostname = url.hostname.replaceAll(/^\[|\]$/g, '')
  // An address in digits is connected to without a lookup, so it is checked beforehand.
  if (isIP(hostname) !== 0 && !options.isAllowed(hostname)) throw notPublic(hostname)
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      agent: false,
      lookup: guardedLookup(options),
      signal: options.signal,
      maxHeaderSize: 65_536,
      headers: {
        accept: 'text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,*/*;q=0.5',
        'accept-encoding': 'identity',
        'user-agent': 'Lango (fetch_url)',
      },
    })
    outgoing.on('response', resolve)
    outgoing.on('error', error => reject(asFailure(url, error, options.signal)))
    outgoing.end()
  })
}

/** Resolves a name and hands out its addresses only when every one of them is allowed. */
function guardedLookup({ isAllowed, lookup = resolveAll }: GuardedGetOptions): LookupFunction {
  return (hostname, { all }, done) => {
    lookup(hostname).then(
      addresses => {
        const forbidden = addresses.find(({ address }) => !isAllowed(address))
        const [first] = addresses
        if (forbidden) done(notPublic(hostname), '')
        else if (!first) done(refusal(`"${hostname}" has no address.`), '')
        else if (all) done(null, [...addresses])
        else done(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => done(error, ''),
    )
  }
}

function resolveAll(hostname: string): Promise<{ address: string; family: number }[]> {
  return new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  })
}

/** Reads up to the limit, counted after unpacking: a small answer may unpack to a huge one. */
async function readBody(
  response: IncomingMessage,
  maxBytes: number,
): Promise<{ body: Buffer; isCut: boolean }> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of unpacked(response) as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, maxBytes - size))
      size += chunk.length
      if (size > maxBytes) break
    }
  } catch (error) {
    throw refusal(`The answer broke off: ${messageOf(error)}.`, error)
  } finally {
    response.destroy()
  }
  return { body: Buffer.concat(chunks), isCut: size > maxBytes }
}

function unpacked(response: IncomingMessage): Readable {
  const encoding = response.headers['content-encoding'] ?? 'identity'
  const unpack = own(UNPACKERS, encoding)?.()
  if (!unpack) return response
  response.on('error', error => unpack.destroy(error))
  return response.pipe(unpack)
}

const UNPACKERS: Readonly<Record<string, () => ReturnType<typeof createGunzip>>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

function asFailure(url: URL, error: Error, signal: AbortSignal): AgentError {
  if (error instanceof AgentError) return error
  const reason = signal.aborted ? 'it took too long or was stopped' : messageOf(error)
  return refusal(`${url.origin} could not be fetched: ${reason}.`, error)
}

function notPublic(host: string): AgentError {
  return refusal(
    `"${host}" is not on the public internet (private, loopback, link-local or reserved), and fetching from there is not allowed.`,
  )
}

function refusal(message: string, cause?: unknown): AgentError {
  return new AgentError('invalid-argument', message, { cause })
}
