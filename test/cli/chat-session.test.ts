// The chat without its screen, on a real runtime: what is asked, answered, kept and given back.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { FunctionTool, LlmAgent } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { withMedia } from '../../src/base/tool-media.js'
import {
  type ApprovalQuestion,
  type CallFacts,
  ChatSession,
  type ChatUi,
} from '../../src/cli/chat/chat-session.js'
import { itemLines } from '../../src/cli/chat/item-lines.js'
import { runCommand } from '../../src/cli/chat/run-command.js'
import { createTheme } from '../../src/cli/chat/theme.js'
import type { OpenedRuntime } from '../../src/cli/open-runtime.js'
import { createRegistry } from '../../src/provider/provider-registry.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { defineTool, type OutcomeAnswer } from '../../src/tool.js'
import { temporaryFolder } from '../support/temporary-folder.js'

interface Talk {
  chat: ChatSession
  asked: ApprovalQuestion[]
  outcomes: CallFacts[]
  restored: string[]
}

async function talk(
  script: readonly ScriptStep[],
  options: Partial<RuntimeOptions>,
  answer = true,
  outcome: OutcomeAnswer = 'leave',
): Promise<Talk> {
  const providers = { play: new ScriptedProvider(script, { id: 'play' }) }
  const runtime = await createRuntime({ store: 'memory:', providers, ...options })
  onTestFinished(() => runtime.close())
  const opened = { runtime, config: { app: 'lango' }, model: 'play/m' } as unknown as OpenedRuntime
  const chat = new ChatSession({
    opened,
    cwd: await temporaryFolder(),
    registry: createRegistry(providers),
    userId: 'user',
    sessionId: 's',
    header: [],
  })
  const asked: ApprovalQuestion[] = []
  const outcomes: CallFacts[] = []
  const restored: string[] = []
  const ui: ChatUi = {
    askApproval: async question => {
      asked.push(question)
      return answer ? 'once' : 'no'
    },
    askOutcome: async call => {
      outcomes.push(call)
      return outcome
    },
    wait: (_words, work) => work,
    choose: async () => undefined,
    restore: text => restored.push(text),
    sessionOpened: () => {},
    leave: () => {},
  }
  chat.connect(ui)
  return { chat, asked, outcomes, restored }
}

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({ amount: z.number() }),
  execute: ({ amount }, context) => {
    if (!context?.toolConfirmation) {
      context?.requestConfirmation({ hint: `Pay ${amount}?` })
      return { status: 'waiting' }
    }
    return context.toolConfirmation.confirmed ? { paid: amount } : { error: 'refused' }
  },
})

test.each([true, false])("a confirmation of ADK's is asked for, and the answer %s is sent", async answer => {
  const script = [
    { toolCalls: [{ name: 'pay', args: { amount: 5 } }] },
    { text: 'First.' },
    { text: 'Second.' },
  ]
  const rootAgent = new LlmAgent({ name: 'root', model: 'play/m', tools: [pay] })
  const { chat, asked } = await talk(script, { rootAgent }, answer)
  await chat.send('pay')
  expect(asked).toEqual([{ name: 'pay', args: { amount: 5 }, reason: 'Pay 5?', onceOnly: true }])
  const messages = await chat.opened.runtime.store.readMessages(chat.key)
  const answers = messages.filter(({ author, toolCalls }) => author === 'user' && toolCalls)
  expect(answers.map(({ content }) => JSON.parse(content))).toEqual([{ confirmed: answer }])
  expect(chat.state.confirmations).toEqual([])
  expect(chat.state.phase).toBe('idle')
  expect(chat.busy).toBe(false)
})

test('a message that could not be sent comes back, and the chat continues', async () => {
  const { chat, restored } = await talk([{ text: 'Hello.' }], { agent: { name: 'root', model: 'play/m' } })
  const { key } = chat
  await chat.opened.runtime.store.createSession(key)
  const lease = await chat.opened.runtime.store.acquireLease(key)
  const sent = chat.send('are you there?')
  await expect.poll(() => chat.state.phase).toBe('queued')
  chat.stop()
  await sent
  expect(restored).toEqual(['are you there?'])
  expect(chat.state.items.at(-1)).toMatchObject({ tone: 'error', text: 'Stopped before it was sent.' })
  await lease.release()
  await chat.send('and now?')
  expect(chat.state.items.at(-1)).toMatchObject({ kind: 'text', text: 'Hello.' })
})

test('messages that are sent meanwhile follow in order', async () => {
  const script = ['one', 'two', 'three'].map(text => ({ text }))
  const { chat } = await talk(script, { agent: { name: 'root', model: 'play/m' } })
  await Promise.all([chat.send('first'), chat.send('second'), chat.send('third')])
  const said = chat.state.items.map(item => ('text' in item ? item.text : item.kind))
  expect(said).toEqual(['first', 'one', 'second', 'two', 'third', 'three'])
  expect(chat.state.queue).toEqual([])
})

test.each([
  ['happened', 'done', 1],
  ['run', 'done', 2],
  ['leave', 'unknown', 1],
] as const)('an unknown outcome is asked about, and the answer %s is sent', async (answer, status, times) => {
  let calls = 0
  const once = defineTool({
    name: 'charge',
    description: 'Charges a card.',
    parameters: { type: 'object' },
    onUnknown: 'ask',
    execute: () => {
      calls += 1
      if (calls > 1) return { charged: true }
      chat.stop()
      return new Promise(() => {})
    },
  })
  const charge = { toolCalls: [{ name: 'charge', args: { amount: 5 } }] }
  const agent = { name: 'root', model: 'play/m', tools: [once] }
  const talked = await talk([charge, charge, { text: 'Done.' }], { agent }, true, answer)
  const { chat } = talked
  await chat.send('charge five')
  expect(chat.state.items.find(({ kind }) => kind === 'tool')).toMatchObject({ status: 'unknown' })
  await chat.send('did you?')
  expect(talked.outcomes).toEqual([{ name: 'charge', args: { amount: 5 } }])
  expect(chat.state.items.findLast(({ kind }) => kind === 'tool')).toMatchObject({
    status,
    outcome: { answer },
  })
  expect(calls).toBe(times)
  expect(chat.state.phase).toBe('idle')
})

test('a run that waits in the queue of its session says its place until it begins', async () => {
  const { chat } = await talk([{ text: 'First.' }, { text: 'Second.' }], {
    agent: { name: 'root', model: 'play/m' },
  })
  const { runtime } = chat.opened
  await runtime.store.createSession(chat.key)
  const lease = await runtime.store.acquireLease(chat.key)
  const { sessionId } = chat.key
  const { runId } = await runtime.start({ sessionId, text: 'earlier', whenBusy: 'queue' })
  const sent = chat.send('later')
  await expect.poll(() => [chat.state.phase, chat.state.place]).toEqual(['queued', 2])
  await lease.release()
  await sent
  expect(chat.state.items.at(-1)).toMatchObject({ kind: 'text', text: 'Second.' })
  expect((await runtime.findRun(runId))?.finished).toBe(true)
})

test('a picture is one line with its type and size, and /save writes it under a name that is no path', async () => {
  const { chat } = await talk([{ text: 'A cat.' }], { agent: { name: 'root', model: 'play/m' } })
  const { runtime } = chat.opened
  const data = Buffer.from('not really a picture').toString('base64')
  await runtime.runAndCollect({
    userId: 'user',
    sessionId: 's',
    text: 'What is it?',
    parts: [{ inlineData: { mimeType: 'image/png', data, displayName: '../../cat 1.png' } }],
  })
  await chat.open('s')
  const line = 'picture: ../../cat 1.png · image/png · 20 B · /save writes it to a file'
  expect(chat.state.items).toContainEqual(expect.objectContaining({ kind: 'notice', text: line }))
  await runCommand(chat, {} as ChatUi, 'save', '')
  expect(await readFile(join(chat.cwd, 'cat_1.png'), 'utf8')).toBe('not really a picture')
  await runCommand(chat, {} as ChatUi, 'save', '')
  expect(JSON.stringify(chat.state.items.at(-1))).toContain('the file already exists')
})

test('a picture from a tool is a line below its result when the session is opened again, and /save writes it', async () => {
  const data = Buffer.from('not really a picture').toString('base64')
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    execute: () => withMedia({ note: 'the screen' }, [{ mimeType: 'image/png', data }]),
  })
  const script = [{ toolCalls: [{ name: 'look', args: {} }] }, { text: 'A cat.' }]
  const { chat } = await talk(script, { agent: { name: 'root', model: 'play/m', tools: [look] } })
  await chat.send('Look.')
  const file = join(await temporaryFolder(), 'cat.png')
  await runCommand(chat, {} as ChatUi, 'save', file)
  expect(await readFile(file, 'utf8')).toBe('not really a picture')
  await chat.open('s')
  const item = chat.state.items.find(({ kind }) => kind === 'tool')
  const view = { width: 80, showReasoning: false, agent: 'root' }
  const lines = item ? itemLines(item, createTheme(false), view).slice(1) : []
  expect(lines.map(line => line.replace(/\p{Cc}\[\d+m/gu, '').trim())).toEqual([
    '→ note: "the screen"',
    'picture: image/png · 20 B · /save writes it to a file',
  ])
})
