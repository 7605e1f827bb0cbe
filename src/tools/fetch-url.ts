import { lookup as systemLookup } from 'node:dns'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { z } from 'zod'
import { own } from '../base/own.js'
import { AgentError, messageOf } from '../errors.js'
import { defineTool, type Tool } from '../tool.js'
import { htmlToText } from './html-to-text.js'

export interface FetchUrlOptions {
  /** Addresses outside the public internet: none (the default), all, or a list of addresses and ranges. */
  allowPrivateNetwork?: boolean | readonly string[] | undefined
  /** For the whole call, redirects included. Default 30,000. */
  timeoutMs?: number | undefined
  /** Default 5,000,000. Longer responses are truncated. */
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
      'Fetches a web page or a text from a public http or https address. Pages come as readable text. Long texts come in pieces: continue with offset set to nextOffset.',
    parameters: z.object({
      url: z.string().min(1).max(8_000),
      offset: z.int().min(0).default(0).describe('The character of the text to start with.'),
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

/** Below the limit of a result for any script. */
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

/** Resolves a name to all of its addresses. */
type Lookup = (hostname: string) => Promise<readonly { address: string; family: number }[]>

interface GuardedGetOptions {
  isAllowed: (address: string) => boolean
  lookup?: Lookup | undefined
  maxBytes: number
  signal: AbortSignal
}

interface GuardedResponse {
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
 * the connection uses a checked address, so DNS rebinding has no effect. Redirects are followed here, too, each
 * checked like the first address.
 */
async function guardedGet(address: string, options: GuardedGetOptions): Promise<GuardedResponse> {
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
  if (!url) throw refusal(`"${address}" is not a URL. Pass a complete one, such as https://example.com/page.`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refusal(`"${url.protocol}" is not allowed: only http and https are.`)
  }
  if (url.username !== '' || url.password !== '')
    throw refusal('A URL with a user name or password is not allowed.')
  return url
}

function send(url: URL, options: GuardedGetOptions): Promise<IncomingMessage> {
  const hostname = url.hostname.replaceAll(/^\[|\]$/g, '')
  // An IP address is connected to without a lookup, so it is checked first.
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

/** Resolves a name and returns its addresses only when all of them are allowed. */
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

/** Reads up to the limit, counted after decompression: a small response may decompress to a huge one. */
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
    throw refusal(`The response ended early: ${messageOf(error)}.`, error)
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
  const reason = signal.aborted ? 'it timed out or was aborted' : messageOf(error)
  return refusal(`Cannot fetch ${url.origin}: ${reason}.`, error)
}

function notPublic(host: string): AgentError {
  return refusal(
    `"${host}" is not on the public internet (private, loopback, link-local or reserved), and fetching from there is not allowed.`,
  )
}

function refusal(message: string, cause?: unknown): AgentError {
  return new AgentError('invalid-argument', message, { cause })
}

/** IPv4 addresses that are not on the public internet, and public ones that only a cloud's machines reach. */
const PRIVATE_IPV4 = [
  '0.0.0.0/8', // this host
  '10.0.0.0/8',
  '100.64.0.0/10', // carrier-grade NAT
  '127.0.0.0/8',
  '168.63.129.16/32', // Azure's host services
  '169.254.0.0/16', // link-local, and the metadata of most clouds
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
]

/** Of IPv6 only 2000::/3 is public. In it these are not, or carry an IPv4 address that would go unchecked. */
const PUBLIC_IPV6 = ['2000::/3']
const PRIVATE_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

const privateIPv4 = listOf(PRIVATE_IPV4)
const publicIPv6 = listOf(PUBLIC_IPV6)
const privateIPv6 = listOf(PRIVATE_IPV6)

/** Whether an address is anything but a public one. What is not an address counts as private. */
export function isPrivateAddress(address: string): boolean {
  const [plain = ''] = address.split('%')
  if (isIPv4(plain)) return privateIPv4.check(plain, 'ipv4')
  if (isIP(plain) !== 6) return true
  return !publicIPv6.check(plain, 'ipv6') || privateIPv6.check(plain, 'ipv6')
}

/** The check for private addresses: all, none, or those in a list of addresses and ranges (`10.1.0.0/16`) are allowed. */
export function addressPolicy(allowPrivate: boolean | readonly string[]): (address: string) => boolean {
  if (allowPrivate === true) return () => true
  const allowed = listOf(allowPrivate === false ? [] : allowPrivate)
  return address => {
    const [plain = ''] = address.split('%')
    if (!isPrivateAddress(plain)) return true
    return isIP(plain) !== 0 && allowed.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6')
  }
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/')
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    try {
      list.addSubnet(address, prefix === undefined ? (family === 'ipv4' ? 32 : 128) : Number(prefix), family)
    } catch (error) {
      const message = `"${range}" is neither an address nor a range. Write for example "127.0.0.1" or "10.1.0.0/16".`
      throw new AgentError('invalid-config', message, { cause: error })
    }
  }
  return list
}
