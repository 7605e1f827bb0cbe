/**
 * Keeps other people's web pages out. A page on the internet can make a browser send requests to this machine,
 * also under a name of its own that it lets point here; so the name that was asked for must be ours, and a page
 * that asks must be ours or one that was allowed.
 */
import { isIP } from 'node:net'
import { Refusal } from '../refusal.js'

export interface OriginRules {
  /** Whether the server listens on loopback only. */
  loopbackOnly: boolean
  /** The host that it was told to listen on. */
  host: string
  allowedOrigins: readonly string[]
  /** Further names under which the server is reached. */
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
    throw new Refusal('forbidden', `This server does not answer under that name. ${advice}`)
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
  const name = host.replace(/^\[|\]$/g, '').toLowerCase()
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
  return origin.replace(/^https?:\/\//, '')
}

/** The name without its port, in small letters; `undefined` for what is no name. */
function hostnameOf(host: string | undefined): string | undefined {
  const found = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(host ?? '')
  return (found?.[1] ?? found?.[2])?.toLowerCase()
}

/** Behind a proxy that ends TLS the scheme is not known here, so either is taken. */
export function isSameOrigin(origin: string, host: string | undefined): boolean {
  const name = host?.toLowerCase()
  return origin.toLowerCase() === `http://${name}` || origin.toLowerCase() === `https://${name}`
}
