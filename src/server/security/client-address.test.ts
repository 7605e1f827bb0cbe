import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { addressReader, isAddressRange } from './client-address.js'

/** The two facts of a request that are read. */
function request(remoteAddress: string | undefined, forwarded?: string): IncomingMessage {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage
}

test.each<[string | undefined, string | undefined, readonly string[], string]>([
  ['203.0.113.9', '192.0.2.1', [], '203.0.113.9'],
  ['203.0.113.9', '192.0.2.1', ['10.0.0.0/8'], '203.0.113.9'],
  ['10.0.0.1', '192.0.2.1', ['10.0.0.0/8'], '192.0.2.1'],
  ['10.0.0.1', '192.0.2.66, 192.0.2.1, 10.9.9.9', ['10.0.0.0/8'], '192.0.2.1'],
  ['::ffff:10.0.0.1', '192.0.2.1:4711', ['10.0.0.1'], '192.0.2.1'],
  ['::1', '[2001:db8:1:2:3::4]:4711', ['::1'], '2001:db8:1:2::/64'],
  ['fe80::1%eth0', undefined, [], 'fe80:0:0:0::/64'],
  ['10.0.0.1', 'unknown', ['10.0.0.1'], '10.0.0.1'],
  ['10.0.0.1', '', ['10.0.0.1'], '10.0.0.1'],
  ['10.0.0.1', '10.0.0.1, 10.0.0.1', ['10.0.0.1'], '10.0.0.1'],
  [undefined, '192.0.2.1', ['10.0.0.1'], ''],
])(
  'a request from %s, forwarded for %s, with the proxies %j, comes from %4$s',
  (peer, forwarded, proxies, address) => {
    expect(addressReader(proxies)(request(peer, forwarded))).toBe(address)
  },
)

test.each([
  ['10.0.0.1', true],
  ['10.0.0.0/8', true],
  ['2001:db8::/32', true],
  ['10.0.0.0/33', false],
  ['10.0.0.0/', false],
  ['10.0.0.0/8/8', false],
  ['10.0.0', false],
  ['proxy.example.com', false],
])('isAddressRange(%s) is %s', (text, expected) => {
  expect(isAddressRange(text)).toBe(expected)
})
