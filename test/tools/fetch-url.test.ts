import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import {
  addressPolicy,
  type FetchUrlOptions,
  fetchUrlTool,
  isPrivateAddress,
} from '../../src/tools/fetch-url.js'
import { htmlToText } from '../../src/tools/html-to-text.js'

import { useTool } from './use-tool.js'

/** A server on an address of this machine. All of 127.0.0.0/8 is, so several hosts can be played. */
async function serve(
  listener: RequestListener,
  host = '127.0.0.1',
): Promise<{ url: string; port: number; hits: string[] }> {
  const hits: string[] = []
  const server = createServer((request, response) => {
    hits.push(request.url ?? '')
    listener(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://${host}:${port}`, port, hits }
}

const page =
  (type: string, body: string | Buffer, headers = {}): RequestListener =>
  (_, response) => {
    response.writeHead(200, { 'content-type': type, ...headers })
    response.end(body)
  }

const fetchUrl = (url: string, options: FetchUrlOptions = {}, args = {}) =>
  useTool(fetchUrlTool(options), { url, ...args })

const HERE: FetchUrlOptions = { allowPrivateNetwork: ['127.0.0.1'] }
const REFUSED = { error: expect.stringContaining('not on the public internet') }

test.each([
  '0.0.0.0',
  '10.0.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '127.0.0.1',
  '127.8.8.8',
  '168.63.129.16',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.168.1.1',
  '198.18.0.1',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:8.8.8.8',
  '::ffff:7f00:1',
  '::127.0.0.1',
  'fe80::1',
  'fe80::1%eth0',
  'fc00::1',
  'fd00:ec2::254',
  'ff02::1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  '2001::1',
  '2001:db8::1',
  'not an address',
  '',
])('%s is an address outside the public internet', address => {
  expect(isPrivateAddress(address)).toBe(true)
})

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.32.0.1',
  '100.128.0.1',
  '192.0.1.1',
  '2606:4700::1111',
  '2a00:1450:4001::64',
])('%s is an address of the public internet', address => {
  expect(isPrivateAddress(address)).toBe(false)
})

test('private addresses can be allowed, by address and by range', () => {
  const isAllowed = addressPolicy(['127.0.0.1', '10.1.0.0/16', '::1'])
  expect(['127.0.0.1', '10.1.2.3', '::1', '8.8.8.8'].every(isAllowed)).toBe(true)
  expect(['127.0.0.2', '10.2.0.1', '::2', '::ffff:10.2.0.1'].some(isAllowed)).toBe(false)
  expect(() => addressPolicy(['10.1'])).toThrow(expect.objectContaining({ code: 'invalid-config' }))
})

test.each([
  ['in digits', (port: number) => `http://127.0.0.1:${port}/`],
  ['as one number', (port: number) => `http://2130706433:${port}/`],
  ['in hexadecimal', (port: number) => `http://0x7f.1:${port}/`],
  ['in octal', (port: number) => `http://0177.0.0.1:${port}/`],
  ['as the unspecified address', (port: number) => `http://0.0.0.0:${port}/`],
  ['in IPv6', (port: number) => `http://[::1]:${port}/`],
  ['as IPv4 in IPv6', (port: number) => `http://[::ffff:127.0.0.1]:${port}/`],
  ['by name', (port: number) => `http://localhost:${port}/`],
  ['by name with a dot', (port: number) => `http://localhost.:${port}/`],
])('an address outside the public internet %s is not connected to', async (_, url) => {
  const { port, hits } = await serve(page('text/plain', 'secret'))
  expect(await fetchUrl(url(port))).toMatchObject({
    error: expect.stringMatching(/public internet|Cannot fetch/),
  })
  expect(hits).toEqual([])
})

test('the metadata address of a cloud is not connected to', async () => {
  expect(await fetchUrl('http://169.254.169.254/latest/meta-data/')).toEqual(REFUSED)
})

test('a private address behind a DNS name is not connected to', async () => {
  const { port, hits } = await serve(page('text/plain', 'secret'))
  const lookup = async () => [{ address: '127.0.0.1', family: 4 }]
  expect(await fetchUrl(`http://innocent.example:${port}/`, { lookup })).toEqual(REFUSED)
  expect(hits).toEqual([])
})

test('a DNS name with a public and a private address is not connected to', async () => {
  const { port, hits } = await serve(page('text/plain', 'secret'), '127.0.0.2')
  const lookup = async () => [
    { address: '127.0.0.1', family: 4 },
    { address: '127.0.0.2', family: 4 },
  ]
  expect(await fetchUrl(`http://mixed.example:${port}/`, { ...HERE, lookup })).toEqual(REFUSED)
  expect(hits).toEqual([])
})

test('a DNS name that changes after the check: the checked address is connected to', async () => {
  const good = await serve(page('text/plain', 'public'))
  let lookups = 0
  const lookup = async () => [{ address: ++lookups === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }]
  expect(await fetchUrl(`http://rebinding.example:${good.port}/`, { ...HERE, lookup })).toMatchObject({
    text: 'public',
  })
  expect(lookups).toBe(1)
  expect(await fetchUrl(`http://rebinding.example:${good.port}/`, { ...HERE, lookup })).toEqual(REFUSED)
})

test.each([
  ['in digits', (port: number) => `http://127.0.0.2:${port}/secret`],
  ['by name', (port: number) => `http://inner.example:${port}/secret`],
  ['as IPv4 in IPv6', (port: number) => `http://[::ffff:127.0.0.2]:${port}/secret`],
])('a private address is not connected to by a redirect, %s', async (_, target) => {
  const inner = await serve(page('text/plain', 'secret'), '127.0.0.2')
  const outer = await serve((_request, response) => {
    response.writeHead(302, { location: target(inner.port) })
    response.end()
  })
  const lookup = async () => [{ address: '127.0.0.2', family: 4 }]
  expect(await fetchUrl(outer.url, { ...HERE, lookup })).toEqual(REFUSED)
  expect(outer.hits).toEqual(['/'])
  expect(inner.hits).toEqual([])
})

test.each([
  ['a file', 'file:///etc/passwd', /only http and https/],
  ['another scheme', 'ftp://example.com/', /only http and https/],
  ['a data URL', 'data:text/plain,x', /only http and https/],
  ['no URL', 'example', /not a URL/],
  ['a password', 'http://user:word@example.com/', /password/],
])('fetch_url refuses %s', async (_, url, message) => {
  expect(await fetchUrl(url)).toEqual({ error: expect.stringMatching(message) })
})

test('fetch_url refuses a redirect to a file', async () => {
  const { url } = await serve((_, response) =>
    response.writeHead(301, { location: 'file:///etc/passwd' }).end(),
  )
  expect(await fetchUrl(url, HERE)).toEqual({ error: expect.stringContaining('only http and https') })
})

test('fetch_url stops redirects without end', async () => {
  const { url, hits } = await serve((_, response) => response.writeHead(307, { location: '/again' }).end())
  expect(await fetchUrl(url, HERE)).toEqual({ error: expect.stringContaining('more than 5 times') })
  expect(hits).toHaveLength(6)
})

test('fetch_url gives up on a server that never answers', async () => {
  const { url } = await serve(() => {})
  expect(await fetchUrl(url, { ...HERE, timeoutMs: 50 })).toEqual({
    error: expect.stringContaining('timed out'),
  })
})

test('fetch_url gives up on an answer that never ends', async () => {
  const { url } = await serve((_, response) => void response.writeHead(200).write('begin'))
  expect(await fetchUrl(url, { ...HERE, timeoutMs: 50 })).toEqual({
    // On a busy machine the time may be over before the beginning has come.
    error: expect.stringMatching(/ended early|timed out/),
  })
})

test('fetch_url reads JSON and text as they are, after redirects', async () => {
  const { url } = await serve((request, response) => {
    if (request.url === '/') response.writeHead(302, { location: 'data' }).end()
    else page('application/json; charset=utf-8', '{"a":"é"}')(request, response)
  })
  expect(await fetchUrl(url, HERE)).toEqual({
    url: `${url}/data`,
    status: 200,
    contentType: 'application/json; charset=utf-8',
    text: '{"a":"é"}',
    totalCharacters: 9,
  })
})

test('fetch_url reads a page as its text, in the charset that it declares', async () => {
  const body = Buffer.from(
    '<html><head><meta charset="iso-8859-1"></head><body><p>caf\xe9</p></body></html>',
    'latin1',
  )
  const { url } = await serve(page('text/html', body))
  expect(await fetchUrl(url, HERE)).toMatchObject({ text: 'café' })
})

test('fetch_url reads an error page with its status', async () => {
  const { url } = await serve((_, response) =>
    response.writeHead(404, { 'content-type': 'text/plain' }).end('none'),
  )
  expect(await fetchUrl(url, HERE)).toMatchObject({ status: 404, text: 'none' })
})

test('fetch_url reads long texts in pieces', async () => {
  const text = 'word '.repeat(5_000)
  const { url } = await serve(page('text/plain', text))
  const first = await fetchUrl(url, HERE)
  expect(first).toMatchObject({ nextOffset: 16_000, totalCharacters: 25_000 })
  const second = await fetchUrl(url, HERE, { offset: 16_000 })
  expect(second).not.toHaveProperty('nextOffset')
  expect(`${first.text}${second.text}`).toBe(text)
})

test('fetch_url reads no more than the limit, counted after unpacking', async () => {
  const bomb = gzipSync(Buffer.alloc(20_000_000, 'a'))
  const { url } = await serve(page('text/plain', bomb, { 'content-encoding': 'gzip' }))
  expect(await fetchUrl(url, { ...HERE, maxBytes: 1_000 })).toMatchObject({
    text: 'a'.repeat(1_000),
    note: expect.stringContaining('first 1000 bytes'),
  })
})

test.each([
  ['an image', 'image/png', 'x'],
  ['text that is none', 'text/plain', 'a\0b'],
  ['a file to keep', 'application/octet-stream', 'x'],
])('fetch_url only describes %s', async (_, type, body) => {
  const { url } = await serve(page(type, body))
  const result = await fetchUrl(url, HERE)
  expect(result).toMatchObject({ bytes: body.length, note: expect.stringContaining('not text') })
  expect(result).not.toHaveProperty('text')
})

test.each([
  [
    'blocks on lines',
    '<title>T</title><h2>Head</h2><p>one<br>two</p><div>three</div>',
    'T\n## Head\none\ntwo\nthree',
  ],
  ['lists', '<ul><li>a<li><b>b</b></ul>', '- a\n- b'],
  [
    'links',
    'see <a class=x href="https://a.b/?x=1&amp;y=2">this <i>page</i></a>, <a href="#top">top</a>',
    'see this page (https://a.b/?x=1&y=2), top',
  ],
  ['no scripts', 'a<script>if (1 < 2) "</p>"</SCRIPT>b<STYLE>p{}</style><!-- <p>no</p> -->c', 'abc'],
  ['signs', '&lt;b&gt; &amp;amp; &#233;&#x41; &unknown; 1 < 2', '<b> &amp; éA &unknown; 1 < 2'],
  ['white space', '  a \n\n  b<p></p><p> </p>c ', 'a b\nc'],
  ['quotes in tags', '<p title="a > b">c</p>', 'c'],
  ['letters that change length', 'İİİ<SCRIPT>x</SCRIPT>y', 'İİİy'],
  ['a script without end', 'a<script>b', 'a'],
  ['a tag without end', 'a<p title="b', 'a'],
])('the text of a page: %s', (_, html, text) => {
  expect(htmlToText(html)).toBe(text)
})

test.each([
  ['<script>'],
  ['<a href="'],
  ['<!--'],
  ['<p title=\'">'],
  ['<'],
  ['<a href="/x">y '],
  ['&#'],
  ['<div><span>'],
  ['<ul><li>'],
])('a page of a megabyte of %s is converted in linear time', part => {
  expect(typeof htmlToText(part.repeat(1_000_000 / part.length))).toBe('string')
})
