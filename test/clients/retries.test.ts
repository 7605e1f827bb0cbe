// Clients with their own retries, at their default settings: a tool that must run once runs once.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { ChatOpenAI } from '@langchain/openai'
import { generateText, streamText } from 'ai'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import {
  type OnceServer,
  type OnceServerOptions,
  signal,
  startOnceServer,
} from '../server/protocols/once-server.js'

interface Call {
  baseURL: string
  headers: Record<string, string>
  fetch: typeof fetch
  stream: boolean
}

/** Sends one message and returns the text of the answer. */
type Client = (call: Call) => Promise<string>

const openai: Client = async ({ baseURL, headers, fetch, stream }) => {
  const client = new OpenAI({ baseURL, apiKey: 'none', defaultHeaders: headers, fetch })
  const request = { model: 'lango', messages: [{ role: 'user' as const, content: 'pay' }] }
  if (!stream) return (await client.chat.completions.create(request)).choices[0]?.message.content ?? ''
  let text = ''
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true }))
    text += chunk.choices[0]?.delta.content ?? ''
  return text
}

const aiSdk: Client = async ({ baseURL, headers, fetch, stream }) => {
  const model = createOpenAICompatible({ name: 'lango', baseURL, headers, fetch })('lango')
  if (!stream) return (await generateText({ model, prompt: 'pay' })).text
  let failure: unknown
  const result = streamText({
    model,
    prompt: 'pay',
    onError: ({ error }) => {
      failure = error
    },
  })
  let text = ''
  for await (const part of result.textStream) text += part
  if (failure !== undefined) throw failure
  return text
}

const langChain: Client = async ({ baseURL, headers, fetch, stream }) => {
  const configuration = { baseURL, defaultHeaders: headers, fetch }
  const model = new ChatOpenAI({ model: 'lango', apiKey: 'none', configuration })
  if (!stream) return String((await model.invoke('pay')).content)
  let text = ''
  for await (const { content } of await model.stream('pay')) text += String(content)
  return text
}

const CLIENTS_BY_NAME: readonly [string, Client][] = [
  ['openai', openai],
  ['the AI SDK', aiSdk],
  ['LangChain', langChain],
]

const CASES = CLIENTS_BY_NAME.flatMap(([name, client]) =>
  [true, false].flatMap(stream =>
    ['named', 'throwaway'].map(session => ({
      name,
      client,
      stream,
      session,
      mode: stream ? 'streamed' : 'whole',
    })),
  ),
)

function callOf({ url }: OnceServer, session: string, stream: boolean, own: typeof fetch = fetch): Call {
  const headers: Record<string, string> = session === 'named' ? { 'x-lango-session': 's' } : {}
  return { baseURL: `${url}/v1`, headers, fetch: own, stream }
}

describe('a provider that fails after the tool', () => {
  test.each(CASES)('$name, $mode, $session session', async ({ client, stream, session }) => {
    const answer = new AgentError('provider-overloaded', 'Overloaded', { retryable: true })
    const server = await startOnceServer({ answer })
    let sent = 0
    const counted: typeof fetch = (...request) => {
      sent += 1
      return fetch(...request)
    }
    await expect(client(callOf(server, session, stream, counted))).rejects.toThrow('Overloaded')
    expect(sent).toBe(1)
    expect(server.charges()).toBe(1)
    expect(await server.userTexts()).toEqual(['pay'])
  })
})

describe.each(['works', 'has ended'])('a connection that is cut, and a retry while the run %s', state => {
  test.each(CASES)('$name, $mode, $session session', async ({ client, stream, session }) => {
    const { options, begun, letGo } = held()
    const server = await startOnceServer(options)
    let sent = 0
    /** The first request loses its connection before its answer; those after it go through. */
    const cut: typeof fetch = async (url, init) => {
      sent += 1
      if (sent > 1) {
        if (state === 'has ended') await expect.poll(() => hasEnded(server)).toBe(true)
        const answer = fetch(url, init)
        letGo()
        return answer
      }
      const lost = new AbortController()
      const answer = fetch(url, { ...init, signal: lost.signal })
      await begun
      lost.abort()
      // Headers may have come before: then it is the body that is lost.
      await answer.then(({ body }) => body?.cancel()).catch(() => {})
      // The server answers this after it has seen that the connection is gone: both are in one event loop.
      for (let count = 0; count < 3; count++) await fetch(`${server.url}/api/health`)
      if (state === 'has ended') letGo()
      throw new TypeError('fetch failed', {
        cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
      })
    }
    expect(await client(callOf(server, session, stream, cut))).toContain('Charged.')
    expect(sent).toBe(2)
    expect(server.charges()).toBe(1)
  })
})

async function hasEnded({ runtime: { store } }: OnceServer): Promise<boolean> {
  const { sessions } = await store.listSessions({ appName: 'lango' })
  const runs = await Promise.all(sessions.map(({ key }) => store.runs.listRuns(key)))
  return runs.flat().some(({ finished }) => finished)
}

describe('a client whose own timeout ends before the run', () => {
  test.each(['named', 'throwaway'])('openai, %s session', async session => {
    const { options, letGo } = held()
    const server = await startOnceServer(options)
    let sent = 0
    const counted: typeof fetch = (...request) => {
      sent += 1
      if (sent > 1) letGo()
      return fetch(...request)
    }
    const { baseURL, headers } = callOf(server, session, false)
    const client = new OpenAI({
      baseURL,
      apiKey: 'none',
      defaultHeaders: headers,
      fetch: counted,
      timeout: 6000,
    })
    const messages = [{ role: 'user' as const, content: 'pay' }]
    const { choices } = await client.chat.completions.create({ model: 'lango', messages })
    expect(choices[0]?.message.content).toContain('Charged.')
    expect(sent).toBeGreaterThan(1)
    expect(server.charges()).toBe(1)
  })
})

/** A tool that runs until it is let go. */
function held(): { options: OnceServerOptions; begun: Promise<void>; letGo: () => void } {
  const begun = signal()
  const end = signal()
  return { options: { held: end.given, onCharge: begun.give }, begun: begun.given, letGo: end.give }
}
