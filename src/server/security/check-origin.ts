/**
 * Protects against requests from foreign web pages. A page on the internet can make a browser send requests to this
 * machine, also under a host name that it resolves to this address; so the host must be one of the server's names,
 * and the origin must be the server's or an allowed one.
 */
import { isIP } from 'node:net'
import { Refusal } from '../refusal.js'

export interface OriginRules {
  /** Whether the server listens on loopback only. */
  loopbackOnly: boolean
  /** The configured host. */
  host: string
  allowedOrigins: readonly string[]
  /** Other host names of the server. */
  allowedHosts: readonly string[]
}

export interface Asked {
  method: string
  host: string | undefined
  origin: string | undefined
  fetchSite: string | undefined
  fetchMode: string | undefined
}

/** Throws unless the request may be answered. Returns the foreign origin that was allowed, if it is one. */
export function checkOrigin(rules: OriginRules, asked: Asked): string | undefined {
  if (!isOurName(rules, hostnameOf(asked.host))) {
    const advice = 'Use localhost or the address itself, or add the name to server.allowedHosts.'
    throw new Refusal('forbidden', `This host name is not allowed. ${advice}`)
  }
  if (asked.origin !== undefined) {
    if (isSameOrigin(asked.origin, asked.host)) return undefined
    if (rules.allowedOrigins.includes(asked.origin)) return asked.origin
    throw foreignPage()
  }
  const isForeign = asked.fetchSite === 'cross-site' || asked.fetchSite === 'same-site'
  const isVisit = asked.fetchMode === 'navigate' && asked.method === 'GET'
  if (isForeign && !isVisit) throw foreignPage()
  return undefined
}

/** Whether a host name or address means this machine and no other. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  if (name === 'localhost' || name === '::1') return true
  return isIP(name) === 4 && name.startsWith('127.')
}

function foreignPage(): Refusal {
  const advice = 'Add its origin to server.allowedOrigins if it is yours.'
  return new Refusal('forbidden', `A page of another site may not call this server. ${advice}`)
}

function isOurName(rules: OriginRules, name: string | undefined): boolean {
  if (name === undefined) return false
  if (isLoopback(name) || name === rules.host.toLowerCase()) return true
  const allowed = [...rules.allowedHosts, ...rules.allowedOrigins.map(hostPart)]
  if (allowed.some(host => hostnameOf(host) === name)) return true
  // An address cannot be made to point elsewhere, as a name can.
  return !rules.loopbackOnly && isIP(name) !== 0
}

function hostPart(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).host : origin
}

/** The name without its port, in small letters; `undefined` for what is no name. */
function hostnameOf(host: string | undefined): string | undefined {
  const found = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(host ?? '')
  return (found?.[1] ?? found?.[2])?.toLowerCase()
}

/** A proxy may terminate TLS, so the scheme is unknown and both are accepted. */
export function isSameOrigin(origin: string, host: string | undefined): boolean {
  const name = host?.toLowerCase()
  return origin.toLowerCase() === `http://${name}` || origin.toLowerCase() === `https://${name}`
}
