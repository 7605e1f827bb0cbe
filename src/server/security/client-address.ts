/**
 * Which address a request comes from, for limits per address. X-Forwarded-For can be written by any client, so it
 * counts only as far as configured proxies wrote it: read from its end, up to the first address that is no proxy.
 */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { AgentError } from '../../errors.js'

export type AddressReader = (incoming: IncomingMessage) => string

export function addressReader(trustedProxies: readonly string[]): AddressReader {
  const proxies = proxyList(trustedProxies)
  return incoming => {
    let address = plainAddress(incoming.socket.remoteAddress ?? '')
    const forwarded = [incoming.headers['x-forwarded-for'] ?? []].flat().join(',').split(',')
    for (const hop of trustedProxies.length === 0 ? [] : forwarded.reverse()) {
      const next = plainAddress(hop)
      if (next === '' || !proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')) break
      address = next
    }
    return network(address)
  }
}

/** Whether a text is an address or a range, as in `10.0.0.0/8`. */
export function isAddressRange(text: string): boolean {
  const [address = '', bits] = text.split('/', 2)
  const family = isIP(address)
  if (family === 0 || text.split('/').length > 2) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

function proxyList(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    if (!isAddressRange(range)) {
      const rule = 'an IP address or a range such as 10.0.0.0/8'
      throw new AgentError('invalid-config', `server.trustedProxies has "${range}", but needs ${rule}.`)
    }
    const [address = '', bits] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}

/** Without port, zone and brackets; IPv4 within IPv6 as IPv4; empty for what is no address. */
function plainAddress(text: string): string {
  const bare = text.trim().replace(/%.*$/, '')
  const inner = /^\[(.*)\](:\d+)?$/.exec(bare)?.[1] ?? /^([\d.]+):\d+$/.exec(bare)?.[1] ?? bare
  const family = isIP(inner)
  if (family !== 6) return family === 4 ? inner : ''
  const canonical = new URL(`http://[${inner}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical)
  if (!mapped) return canonical
  const [high = 0, low = 0] = mapped.slice(1).map(part => Number.parseInt(part, 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** One client usually has a whole /64 of IPv6, so its addresses count as one. */
function network(address: string): string {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0')
  return `${[...first, ...zeros, ...last].slice(0, 4).join(':')}::/64`
}
