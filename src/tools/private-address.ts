import { BlockList, isIP, isIPv4 } from 'node:net'
import { AgentError } from '../errors.js'

/** IPv4 addresses that are not on the public internet, and public ones that only a cloud's machines reach. */
const PRIVATE_IPV4 = [
  '0.0.0.0/8', // this host
  '10.0.0.0/8',
  '100.64.0.0/10', // behind a carrier's translation
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

/** Which private addresses may be used: all, none, or those in a list of addresses and ranges (`10.1.0.0/16`). */
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
