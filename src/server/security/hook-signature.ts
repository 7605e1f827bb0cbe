/**
 * Signatures of hooks: HMAC-SHA256 with a shared secret, compared in constant time.
 *
 * - Standard Webhooks sign `id.timestamp.body`. A request that is older or newer than five minutes is refused; its id is
 *   signed, so the same id is the same delivery.
 * - GitHub signs the body alone. Its delivery id is not signed: a party that has seen a request could send it again under
 *   another one. So the body is the delivery.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { digest } from '../../runtime/derived-id.js'
import { Refusal } from '../refusal.js'

export type HookScheme = 'standard' | 'github'

interface SignedRequest {
  header(name: string): string | undefined
  body: Buffer
  secret: string
  /** Milliseconds since 1970. */
  now: number
}

/** What tells a delivery from others. Throws unless the request is signed with the secret. */
export function deliveryOf(scheme: HookScheme, request: SignedRequest): string {
  return scheme === 'github' ? githubDelivery(request) : standardDelivery(request)
}

function standardDelivery({ header, body, secret, now }: SignedRequest): string {
  const [id, timestamp, signatures] = [
    header('webhook-id'),
    header('webhook-timestamp'),
    header('webhook-signature'),
  ]
  if (!id || !timestamp || !signatures)
    throw refused('it needs the headers webhook-id, webhook-timestamp and webhook-signature')
  if (id.length > 256) throw refused('webhook-id has more than 256 characters')
  const sentAt = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) * 1000 : Number.NaN
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
  const expected = createHmac('sha256', keyOf(secret)).update(signed).digest()
  const isSigned = signatures
    .split(' ')
    .filter(entry => entry.startsWith('v1,'))
    .some(entry => isEqual(Buffer.from(entry.slice(3), 'base64'), expected))
  if (!isSigned) throw refused('webhook-signature is not that of the secret')
  // After the signature: the clock says nothing to those who do not know the secret.
  if (!(Math.abs(now - sentAt) <= TOLERANCE_MS))
    throw refused('webhook-timestamp is more than five minutes away from the clock of this server')
  return `standard ${id}`
}

function githubDelivery({ header, body, secret }: SignedRequest): string {
  const [, signature] = /^sha256=([0-9a-f]{64})$/i.exec(header('x-hub-signature-256') ?? '') ?? []
  if (signature === undefined) throw refused('it needs the header x-hub-signature-256')
  const expected = createHmac('sha256', secret).update(body).digest()
  if (!isEqual(Buffer.from(signature, 'hex'), expected))
    throw refused('x-hub-signature-256 is not that of the secret')
  return `github ${digest([body.toString('base64')])}`
}

const TOLERANCE_MS = 300_000

/** Secrets of Standard Webhooks are base64 after a prefix. */
function keyOf(secret: string): Buffer {
  return secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : Buffer.from(secret)
}

const PREFIX = 'whsec_'

function isEqual(given: Buffer, expected: Buffer): boolean {
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function refused(why: string): Refusal {
  return new Refusal('unauthorized', `The request of the hook is not accepted: ${why}.`)
}
