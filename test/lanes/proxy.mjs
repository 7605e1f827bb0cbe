// The server behind a proxy: nginx with deploy/nginx.conf where it is installed (or named by NGINX), otherwise a proxy of
// Node's own http module. An event arrives while the answer is still being written, a lost connection goes on after its
// last event, the proxy tells the address of its client, and the API works under a path that the proxy takes off.
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { HERE } from './support.mjs'

const HOST = 'agent.example.com'
const TOKEN = 'a-token-of-the-proxy-lane'

export async function proxyLane(home) {
  const folder = join(home.folder, '../proxy')
  mkdirSync(folder)
  const model = await startModel()
  const server = await startServer(home, folder, model)
  let proxy
  try {
    proxy = await startProxy(folder, new URL(server.url).port)
    await checkStream(proxy.url, model)
    await checkPrefix(home, `${proxy.url}/agent`)
    await checkAddresses(proxy.url)
    return { version: proxy.version }
  } finally {
    await proxy?.close()
    await server.close()
    await model.close()
  }
}

/** A model whose answer stops in the middle until it is told to go on. */
async function startModel() {
  let release
  const released = new Promise(resolve => {
    release = resolve
  })
  const slow = createServer(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const chunk = (text, finishReason) =>
      `data: ${JSON.stringify({
        candidates: [
          {
            content: { role: 'model', parts: [{ text }] },
            index: 0,
            ...(finishReason ? { finishReason } : {}),
          },
        ],
        usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 4, totalTokenCount: 13 },
        modelVersion: 'gemini-3-pro',
        responseId: 'r1',
      })}\r\n\r\n`
    response.write(chunk('It is in the '))
    await released
    response.end(chunk('second drawer.', 'STOP'))
  })
  await new Promise(resolve => slow.listen(0, '127.0.0.1', resolve))
  const close = async () => {
    release()
    slow.closeAllConnections()
    await new Promise(resolve => slow.close(resolve))
  }
  return { url: `http://127.0.0.1:${slow.address().port}`, release, close }
}

async function startServer(home, folder, { url }) {
  const config = {
    store: `sqlite:${join(folder, 'lango.db')}`,
    providers: { slow: { type: 'gemini', baseUrl: url, apiKey: 'none' } },
    agent: { name: 'agent', model: 'slow/gemini-3-pro' },
    server: { tokens: { [TOKEN]: 'ann' }, allowedHosts: [HOST], trustedProxies: ['127.0.0.1'] },
  }
  writeFileSync(join(folder, 'lango.config.json'), JSON.stringify(config))
  const main = join(home.folder, 'node_modules/lango/dist/cli/main.js')
  const env = { ...process.env, LANGO_TRUST: '1' }
  const child = spawn(process.execPath, [main, 'serve', '--port', '0', '--json'], { cwd: folder, env })
  const served = JSON.parse(await firstLine(child))
  return { url: served.url, close: () => ended(child) }
}

async function startProxy(folder, port) {
  const nginx = process.env.NGINX ?? 'nginx'
  const found = spawnSync(nginx, ['-v'], { encoding: 'utf8' })
  return found.status === 0 ? startNginx(folder, port, nginx, found.stderr) : startNodeProxy(port)
}

/** The site of deploy/nginx.conf on another port, and once more under a path. */
async function startNginx(folder, port, nginx, banner) {
  const own = await freePort()
  const site = readFileSync(join(HERE, '../../deploy/nginx.conf'), 'utf8')
    .replace('server 127.0.0.1:18789;', `server 127.0.0.1:${port};`)
    .replace('listen 80;', `listen 127.0.0.1:${own};`)
    .replace(
      'location / {',
      `location /agent/ {\n    proxy_pass http://lango/;\n${SHARED}\n  }\n\n  location / {`,
    )
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `${name}_temp_path ${join(folder, name)};`)
    .join('\n')
  const conf = `daemon off;\npid ${join(folder, 'nginx.pid')};\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${places}\n${site}\n}\n`
  writeFileSync(join(folder, 'nginx.conf'), conf)
  const child = spawn(nginx, ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')])
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    printed += text
  })
  const url = `http://127.0.0.1:${own}`
  while (!(await fetch(url, { headers: { host: HOST } }).catch(() => undefined))) {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${printed.slice(-800)}`)
    await pause(50)
  }
  return { url, version: banner.trim().split(' ').at(-1), close: () => ended(child, 'SIGQUIT') }
}

const SHARED = readFileSync(join(HERE, '../../deploy/nginx.conf'), 'utf8')
  .split('\n')
  .filter(line => /^ {4}proxy_(http_version|set_header|buffering|read_timeout)/.test(line))
  .slice(0, 6)
  .join('\n')

async function startNodeProxy(port) {
  const proxy = createServer((incoming, response) => {
    const headers = {
      ...incoming.headers,
      'x-forwarded-for': [incoming.headers['x-forwarded-for'], incoming.socket.remoteAddress]
        .filter(Boolean)
        .join(', '),
      'x-forwarded-proto': 'http',
    }
    const path = incoming.url.replace(/^\/agent(?=\/)/, '')
    const outgoing = request({ port, host: '127.0.0.1', method: incoming.method, path, headers }, answer => {
      response.writeHead(answer.statusCode, answer.headers)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    response.on('close', () => outgoing.destroy())
    incoming.pipe(outgoing)
  })
  await new Promise(resolve => proxy.listen(0, '127.0.0.1', resolve))
  const close = async () => {
    proxy.closeAllConnections()
    await new Promise(resolve => proxy.close(resolve))
  }
  return {
    url: `http://127.0.0.1:${proxy.address().port}`,
    version: 'a proxy of Node; nginx is not installed',
    close,
  }
}

/** Node's fetch sets the header `host` itself, so requests are made without it. */
function ask(url, { method = 'GET', headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const all = { host: HOST, authorization: `Bearer ${TOKEN}`, ...headers }
    if (body !== undefined) all['content-type'] = 'application/json'
    const sent = request(url, { method, headers: all, agent: false }, answer => {
      answer.setEncoding('utf8')
      resolve(answer)
    })
    sent.on('error', reject).end(body)
  })
}

async function textOf(answer) {
  let text = ''
  for await (const chunk of answer) text += chunk
  return text
}

const RUN_ID = '6f6b4d0e-2f5c-4b39-9d1c-3a1f6a0e7b11'

async function checkStream(url, model) {
  const body = JSON.stringify({ text: 'Where is the key?', runId: RUN_ID })
  const started = await ask(`${url}/api/sessions/one/runs`, { method: 'POST', body })
  expect(
    started.statusCode === 202,
    `a run was answered with ${started.statusCode}: ${await textOf(started)}`,
  )
  // The model is in the middle of its answer: what arrives now was not held back.
  const stream = await ask(`${url}/api/runs/${RUN_ID}/events`)
  let seen = ''
  for await (const chunk of stream) {
    seen += chunk
    if (seen.includes('"text":"It is in the "')) break
  }
  expect(seen.includes('"text":"It is in the "'), 'the stream ended before the first words of the answer')
  stream.destroy()
  const last = seen
    .match(/^id: (\d+)$/gm)
    ?.at(-1)
    ?.slice('id: '.length)
  model.release()
  const rest = await textOf(
    await ask(`${url}/api/runs/${RUN_ID}/events`, { headers: { 'last-event-id': last } }),
  )
  const first = /^id: (\d+)$/m.exec(rest)?.[1]
  expect(Number(first) === Number(last) + 1, `after event ${last} the stream goes on with ${first}`)
  expect(rest.includes('"type":"run-finish"'), 'the stream that was opened again does not end with the run')
}

/** With a token the server accepts an IP address for its name, which is what fetch sends here. */
async function checkPrefix(home, url) {
  const entry = pathToFileURL(join(home.folder, 'node_modules/lango/dist/entries/client.js'))
  const { createClient } = await import(entry)
  const client = createClient({ baseUrl: url, token: TOKEN })
  const events = []
  for await (const { type } of client.follow(RUN_ID)) events.push(type)
  expect(events.at(-1) === 'run-finish', `under a path the run ends with ${events.at(-1)}`)
}

/** Ten wrong tokens block the address of the client, not that of the proxy. */
async function checkAddresses(url) {
  const from = address => ({ 'x-forwarded-for': address })
  for (let index = 0; index < 11; index += 1) {
    const headers = { ...from('203.0.113.7'), authorization: `Bearer a-wrong-token-number-${index}` }
    await textOf(await ask(`${url}/api/info`, { headers }))
  }
  // nginx and the proxy of Node append the address that they see: the server takes the last that is not a proxy.
  const blocked = await ask(`${url}/api/info`, {
    headers: { ...from('203.0.113.7'), authorization: 'Bearer a-new-wrong-token' },
  })
  const other = await ask(`${url}/api/info`, { headers: from('203.0.113.8') })
  await Promise.all([textOf(blocked), textOf(other)])
  expect(
    blocked.statusCode === 429,
    `after eleven wrong tokens the client was answered ${blocked.statusCode}`,
  )
  expect(other.statusCode === 200, `another client was answered ${other.statusCode}`)
}

function expect(holds, message) {
  if (!holds) throw new Error(message)
}

async function firstLine(child) {
  let [printed, errors] = ['', '']
  child.stderr.setEncoding('utf8').on('data', text => {
    errors += text
  })
  for await (const text of child.stdout.setEncoding('utf8')) {
    printed += text
    if (printed.includes('\n')) return printed.split('\n')[0]
  }
  throw new Error(`lango serve ended: ${errors.slice(-1000)}`)
}

async function ended(child, signal = 'SIGTERM') {
  if (child.exitCode !== null) return
  const closed = new Promise(resolve => child.on('close', resolve))
  child.kill(signal)
  await closed
}

async function freePort() {
  const server = createServer()
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise(resolve => server.close(resolve))
  return port
}
