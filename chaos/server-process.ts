// server-process.ts <settings as JSON>: one server of the fleet. Prints its URL; SIGTERM shuts it down.
import { subscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import type { Logger } from '../src/logger.js'
import type { ProviderOptions } from '../src/provider/provider-settings.js'
import { createRuntime } from '../src/runtime/runtime.js'
import { serve } from '../src/server/serve.js'
import { defineTool, type OnUnknown, type Tool, type ToolContext } from '../src/tool.js'
import type { Counter } from './bank.js'
import { SERVER_HEADER } from './orders.js'

export interface ServerSettings {
  slot: number
  store: string
  bankUrl: string
  /** Base URLs by profile. */
  models: Readonly<Record<string, string>>
  defaultModel: string
  /** Makes the counter without keys pay again when an outcome is unknown: a mistake that the checks must find. */
  sabotage: boolean
  /** Whether runs of processes that are gone are continued. */
  resume: boolean
  maxAttempts: number
  /** What dispatches runs. */
  engine: 'leases' | 'dbos'
  /** Sent with every answer. The port of a killed server may belong to another program by now. */
  token: string
}

const settings = JSON.parse(process.argv[2] ?? '{}') as ServerSettings
const { slot, store, bankUrl, models, defaultModel, sabotage, resume, maxAttempts, engine, token } = settings

function payTool(counter: Counter, onUnknown?: OnUnknown): Tool {
  return defineTool({
    name: `pay_${counter}`,
    description: 'Pays an order at the bank.',
    parameters: {
      type: 'object',
      properties: { order: { type: 'string' }, amount: { type: 'number' } },
      required: ['order', 'amount'],
    },
    effect: 'once',
    needsApproval: counter === 'asked',
    ...(onUnknown ? { onUnknown } : {}),
    execute: (args, context) => pay(counter, args, context),
  })
}

async function pay(
  counter: string,
  args: unknown,
  { idempotencyKey, signal }: ToolContext,
): Promise<unknown> {
  const response = await fetch(`${bankUrl}/${counter}`, {
    method: 'POST',
    headers: { 'idempotency-key': idempotencyKey, 'x-chaos-slot': String(slot) },
    body: JSON.stringify(args),
    signal,
  })
  return response.json()
}

const balance = defineTool({
  name: 'balance',
  description: 'Reads the balance.',
  parameters: { type: 'object', properties: {} },
  effect: 'read',
  execute: async (_args, { signal }) => (await fetch(`${bankUrl}/balance`, { signal })).json(),
})

function providerOf(profile: string, baseUrl: string): ProviderOptions {
  const headers = { 'x-chaos-slot': String(slot) }
  const common = { apiKey: 'chaos', baseUrl, headers, retry: { baseDelayMs: 50 } }
  if (profile.startsWith('gemini')) return { type: 'gemini', ...common }
  if (profile.startsWith('anthropic')) return { type: 'anthropic', ...common }
  return { type: 'openai', api: 'chat', ...common }
}

const log = (level: string) => (message: string, fields?: object) =>
  console.error(JSON.stringify({ at: new Date().toISOString(), slot, level, message, ...fields }))
const logger: Logger = { debug: () => {}, info: () => {}, warn: log('warn'), error: log('error') }

subscribe('http.server.request.start', message => {
  const { response } = message as { response: ServerResponse }
  response.setHeader(SERVER_HEADER, token)
})
const runtime = await createRuntime({
  store,
  logger,
  runs: { resume, maxAttempts },
  engine,
  providers: Object.fromEntries(Object.entries(models).map(([name, url]) => [name, providerOf(name, url)])),
  agent: {
    name: 'clerk',
    model: defaultModel,
    instruction: 'Pay what the user orders.',
    tools: [
      payTool('keyed', 'retry'),
      payTool('blind', sabotage ? 'retry' : undefined),
      payTool('asked'),
      balance,
    ],
  },
})
const server = await serve({
  runtime,
  port: 0,
  host: '127.0.0.1',
  version: '0.0.0-chaos',
  graceMs: 200,
  logger,
  limits: { runsPerUser: 1000, streamsPerUser: 1000 },
})
process.once('SIGTERM', async () => {
  await server.close()
  await runtime.close()
})
console.log(server.url)
