// A server is stopped while requests are in flight, and another one on its store continues their runs: OpenAI's client, with
// its own retries, gets the whole answer, and a tool with an effect is executed once.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import OpenAI from 'openai'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { RunItem } from '../../../src/server/chat-protocol.js'
import { startStrictProvider } from '../../../src/testing/start-strict-provider.js'
import type { ScriptStep } from '../../../src/testing/strict/script.js'
import { startLango } from '../../cli/lango.js'
import { eventually } from '../../support/eventually.js'
import { startTcpProxy } from '../../support/tcp-proxy.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { LONG, longUnless } from '../../support/tiers.js'

// Starting processes takes long on a busy machine.
vi.setConfig({ testTimeout: 240_000 })

const ANSWER = 'The payment was made.'

const PAY_TOOL = `{
  name: 'pay', description: 'Pays.', parameters: { type: 'object' }, effect: 'once',
  execute: () => {
    appendFileSync('paid.txt', '.')
    return { paid: true }
  },
}`

/** A model that calls the tool, and does not answer the first request after that. */
async function startModel() {
  let held = 0
  const isHeld = new Promise<ScriptStep>(() => {})
  const model = await startStrictProvider({
    profile: 'openai-chat',
    script: ({ messages }) => {
      if (!messages.some(({ toolResults }) => toolResults.length > 0)) return { toolCalls: [{ name: 'pay' }] }
      held += 1
      return held === 1 ? isHeld : { text: ANSWER }
    },
  })
  onTestFinished(() => model.close())
  return { baseUrl: model.baseUrl, isAsked: () => held > 0 }
}

async function startServe(cwd: string) {
  const child = startLango(['serve', '--json', '--port', '0'], { cwd })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout ?? process.stdin })[Symbol.asyncIterator]()
  const { url } = JSON.parse((await lines.next()).value ?? '{}') as { url: string }
  const stop = () => {
    const ended = new Promise<number | null>(resolve => child.once('close', resolve))
    child.kill('SIGTERM')
    return ended
  }
  return { port: Number(new URL(url).port), stop }
}

/** Two servers on one store behind an address that leads to the first one. */
async function stage() {
  const cwd = await temporaryFolder()
  const model = await startModel()
  const play = { type: 'openai-compatible', baseUrl: model.baseUrl, apiKey: 'test', profile: 'openai-chat' }
  const config = { store: 'sqlite:./lango.db', providers: { play }, server: { graceMs: 0 } }
  const source = `import { appendFileSync } from 'node:fs'
export default { ...${JSON.stringify(config)}, agent: { name: 'root', model: 'play/gpt-4.1', tools: [${PAY_TOOL}] } }`
  await writeFile(join(cwd, 'lango.config.mjs'), source)
  const [first, second] = [await startServe(cwd), await startServe(cwd)]
  const proxy = await startTcpProxy(first.port)
  onTestFinished(() => proxy.close())
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${proxy.port}/v1`, apiKey: 'none' })
  /** Stops the first server once the run is in the middle of its answer. */
  const restart = async () => {
    await eventually(model.isAsked).toBe(true)
    proxy.leadTo(second.port)
    return first.stop()
  }
  const payments = async () => (await readFile(join(cwd, 'paid.txt'), 'utf8')).length
  return { client, restart, payments, url: `http://127.0.0.1:${proxy.port}` }
}

const QUESTION: OpenAI.ChatCompletionCreateParamsNonStreaming = {
  model: 'lango',
  messages: [{ role: 'user', content: 'Pay.' }],
}

const REQUESTS: Readonly<Record<string, (client: OpenAI) => Promise<unknown>>> = {
  'a chat completion': async client => {
    const { choices } = await client.chat.completions.create(QUESTION)
    return choices[0]?.message.content
  },
  'a chat completion in a session': async client => {
    const headers = { 'x-lango-session': 's1' }
    const { choices } = await client.chat.completions.create(QUESTION, { headers })
    return choices[0]?.message.content
  },
  'a streamed chat completion': async client => {
    let text = ''
    for await (const { choices } of await client.chat.completions.create({ ...QUESTION, stream: true }))
      text += choices[0]?.delta.content ?? ''
    return text
  },
  'a response': async client => {
    const { output_text } = await client.responses.create({ model: 'lango', input: 'Pay.' })
    return output_text
  },
}

for (const [name, ask] of Object.entries(REQUESTS)) {
  const title = `SIGTERM during ${name}: OpenAI’s client repeats it and gets the whole answer from another server`
  test(title, longUnless(name === 'a chat completion'), async () => {
    const { client, restart, payments } = await stage()
    const [answer, code] = await Promise.all([ask(client), restart()])
    expect({ answer, code, payments: await payments() }).toEqual({ answer: ANSWER, code: 0, payments: 1 })
  })
}

test(
  'SIGTERM during a request of a client that does not count its retries: the repeated request is the same run',
  LONG,
  async () => {
    const { restart, payments, url } = await stage()
    const send = () =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-lango-session': 's1' },
        body: JSON.stringify(QUESTION),
      })
    const [cut] = await Promise.all([send(), restart()])
    expect(cut.status).toBe(503)
    const runs = async () =>
      ((await (await fetch(`${url}/api/sessions/s1/runs`)).json()) as { runs: RunItem[] }).runs
    await eventually(runs).toMatchObject([{ status: 'finished' }])
    const answer = await send()
    expect(await answer.text()).toContain(ANSWER)
    expect(await runs()).toHaveLength(1)
    expect(await payments()).toBe(1)
  },
)
