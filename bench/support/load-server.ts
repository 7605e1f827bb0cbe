/** A server with many clients against a bare ADK server that stores nothing. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { InMemorySessionService, Runner } from '@google/adk'
import { serve as serveBare } from '@hono/node-server'
import { Hono } from 'hono'
import { streamSSE } from 'hono/streaming'
import { silentLogger } from '../../src/logger.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { serve } from '../../src/server/serve.js'
import { interleaved, spread } from './interleaved.js'
import { oneToolAgent, QUESTION } from './one-tool-agent.js'
import type { Report } from './report.js'

const CLIENTS = 100
const MODEL_MS = 200
const ROUNDS_PER_CLIENT = 5
/** Passes of each side before anything is measured: a side with more code is compiled later. */
const WARM_UP = Number(process.env.LANGO_BENCH_WARM_UP ?? 4)

/** Runs per second of a server with many clients and a slow model, against a bare ADK server. */
export async function measureServer(
  report: Report,
  { folder, postgresUrl }: { folder: string; postgresUrl: string },
): Promise<void> {
  for (const [name, url, goal] of [
    ['SQLite', `sqlite:${folder}/server.db`, 0.6],
    ['PostgreSQL', postgresUrl, 0.5],
  ] as const) {
    report.progress(`${name}, a server with ${CLIENTS} clients …`)
    const ours = await startOurs(url)
    const bare = await startBare()
    const pass = async (target: string) => (await runClientsApart(target, CLIENTS)).perSecond
    const [oursPass, barePass] = [() => pass(`${ours.url}/api`), () => pass(`${bare.url}/bare`)]
    report.progress(`  ${WARM_UP} passes of each side that are not measured`)
    for (let round = 0; round < WARM_UP; round++) for (const each of [oursPass, barePass]) await each()
    const sides = await interleaved(oursPass, barePass)
    report.rate(`${name}, runs per second with ${CLIENTS} clients`, '/s', sides.ours, sides.peer, goal)
    report.progress(spread(sides))
    if (name === 'SQLite') {
      const { acceptP99 } = await runClientsApart(`${ours.url}/api`, 500)
      report.atMost('SQLite, p99 of accepting a run with 500 clients', 'ms', acceptP99, 1000, 1)
    }
    await ours.close()
    await bare.close()
  }
}

async function startOurs(url: string) {
  const runtime = await createRuntime({ store: url, rootAgent: oneToolAgent(MODEL_MS) })
  const server = await serve({
    runtime,
    port: 0,
    host: '127.0.0.1',
    logger: silentLogger,
    version: 'bench',
    graceMs: 0,
    limits: { streamsPerUser: 10_000, runsPerUser: 10_000, heartbeatMs: 60_000 },
  })
  const close = async () => {
    await server.close()
    await runtime.close()
  }
  return { url: server.url, close }
}

/** ADK in memory, its events streamed as they come. */
async function startBare() {
  const app = new Hono()
  const agent = oneToolAgent(MODEL_MS)
  const sessionService = new InMemorySessionService()
  app.post('/bare/:session', c =>
    streamSSE(c, async stream => {
      const sessionId = c.req.param('session')
      const runner = new Runner({ appName: 'bench', agent, sessionService })
      await sessionService.getOrCreateSession({ appName: 'bench', userId: 'u', sessionId })
      const newMessage = { role: 'user', parts: [{ text: QUESTION }] }
      for await (const event of runner.runAsync({ userId: 'u', sessionId, newMessage }))
        await stream.writeSSE({ data: JSON.stringify(event) })
    }),
  )
  const server = serveBare({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false })
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => new Promise<void>(resolve => void server.close(() => resolve())),
  }
}

interface ClientFigures {
  perSecond: number
  acceptP99: number
}

/** Clients are a process of their own, so that only the server is measured. */
async function runClientsApart(url: string, count: number): Promise<ClientFigures> {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), '--clients', url, String(count)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let line = ''
  if (child.stdout) for await (const text of createInterface({ input: child.stdout })) line = text
  return JSON.parse(line) as ClientFigures
}

/** In the process of the clients: each sends several messages, one after the other. */
async function runClients([url = '', count = '1']: string[]): Promise<void> {
  const isBare = url.endsWith('/bare')
  const accepts: number[] = []
  const one = async (sessionId: string) => {
    const started = performance.now()
    if (isBare) {
      const answer = await fetch(`${url}/${sessionId}`, { method: 'POST' })
      accepts.push(performance.now() - started)
      await answer.text()
      return
    }
    const answer = await fetch(`${url}/sessions/${sessionId}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ text: QUESTION }),
    })
    if (!answer.ok) throw new TypeError(`${answer.status}: ${await answer.text()}`)
    accepts.push(performance.now() - started)
    await answer.text()
  }
  // Warm connections and compiled code, on both sides.
  await Promise.all(Array.from({ length: Number(count) }, () => one(randomUUID())))
  accepts.length = 0
  const started = performance.now()
  await Promise.all(
    Array.from({ length: Number(count) }, async () => {
      const sessionId = randomUUID()
      for (let round = 0; round < ROUNDS_PER_CLIENT; round++) await one(sessionId)
    }),
  )
  const seconds = (performance.now() - started) / 1000
  const sorted = accepts.toSorted((left, right) => left - right)
  const acceptP99 = sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN
  console.log(JSON.stringify({ perSecond: (Number(count) * ROUNDS_PER_CLIENT) / seconds, acceptP99 }))
  process.exit()
}

if (process.argv.includes('--clients'))
  await runClients(process.argv.slice(process.argv.indexOf('--clients') + 1))
