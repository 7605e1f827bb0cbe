// An image of an MCP server on its way to the model: through the store, the ledger and each vendor's wire.
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { expect, onTestFinished, test } from 'vitest'
import { mcpResult, withoutBinaries } from '../../src/base/mcp-result.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { StrictProfile } from '../../src/testing/strict/profile.js'
import { defineTool, type ToolEffect } from '../../src/tool.js'
import { strictTarget } from '../providers/strict-profiles.js'
import { crashable } from '../support/crashable-store.js'
import { startService } from './mcp-service.js'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const SAYS_SO = '[image image/png, 70 bytes]'

function registerPicture(server: McpServer): void {
  server.registerTool('picture', { description: 'Answers with a picture.' }, () => ({
    content: [
      { type: 'text', text: 'see' },
      { type: 'image', data: PNG, mimeType: 'image/png' },
      { type: 'resource', resource: { uri: 'file:///x', text: 'inner' } },
      { type: 'resource_link', uri: 'file:///y', name: 'y' },
    ],
  }))
}

async function look(profile: StrictProfile) {
  const server = await startStrictProvider({
    profile,
    script: (_, index) =>
      index === 0 ? { toolCalls: [{ name: 'fix_picture', args: {} }] } : { text: 'I see a dot.' },
  })
  onTestFinished(() => server.close())
  const { url } = await startService(registerPicture)
  const { provider, model } = strictTarget(profile, server.baseUrl, {})
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { play: provider },
    agent: { model: `play/${model}` },
    mcpServers: { fix: { url } },
  })
  onTestFinished(() => runtime.close())
  const run = async (text: string) => {
    const events: RunEvent[] = []
    for await (const event of runtime.run({ sessionId: 's', text })) events.push(event)
    return events
  }
  const events = await run('Look.')
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: 'I see a dot.' })
  await run('And now?')
  expect(server.violations).toEqual([])
  return { events, bodies: server.requests.map(({ body }) => body), runtime }
}

/** The objects inside a body that hold a text. */
function holders(body: unknown, text: string): unknown[] {
  if (typeof body !== 'object' || body === null) return []
  const values = Object.values(body)
  if (values.some(value => typeof value === 'string' && value.includes(text))) return [body]
  return values.flatMap(value => holders(value, text))
}

test.each<[StrictProfile, unknown]>([
  ['gemini-2', { mimeType: 'image/png', data: PNG }],
  ['gemini-3', { mimeType: 'image/png', data: PNG }],
  ['anthropic-4.6', { type: 'base64', media_type: 'image/png', data: PNG }],
  ['openai-chat', { url: `data:image/png;base64,${PNG}` }],
  ['openai-responses', { type: 'input_image', image_url: `data:image/png;base64,${PNG}`, detail: 'auto' }],
])('%s gets the image of a tool as an image, and its base64 nowhere else', async (profile, image) => {
  const { bodies, events, runtime } = await look(profile)
  expect(bodies).toHaveLength(3)
  for (const body of bodies.slice(1)) expect(holders(body, PNG)).toEqual([image])
  const result = events.find(event => event.type === 'tool-result')
  expect(result).toMatchObject({ result: { result: `see\n${SAYS_SO}\ninner\n[resource file:///y: y]` } })
  expect(JSON.stringify(events)).not.toContain(PNG)
  const messages = await runtime.store.readMessages({ appName: 'lango', userId: 'user', sessionId: 's' })
  const stored = messages.find(({ role }) => role === 'tool')
  expect(stored?.content).not.toContain(PNG)
  // An image counts as an image, and not as the text of its bytes.
  expect(stored?.tokens).toBeLessThan(1_200)
})

test('a model that takes no images reads that the result of a tool was an image', async () => {
  const { bodies } = await look('deepseek-v4')
  for (const body of bodies.slice(1)) {
    expect(JSON.stringify(body)).not.toContain(PNG)
    expect(JSON.stringify(body)).toContain(SAYS_SO)
  }
})

test.each<[string, unknown, unknown]>([
  ['base64', PNG, '[image/png, shown beside this result]'],
  ['a data URL', `data:image/png;base64,${PNG}`, '[image/png, shown beside this result]'],
  ['a text that ends with it', `see ${PNG}`, `see ${PNG}`],
  ['another picture', PNG.replace('iVBORw0K', 'iVBORw0L'), PNG.replace('iVBORw0K', 'iVBORw0L')],
])('structured content with %s of a picture that is shown', (_, data, expected) => {
  const content = [{ type: 'image', data: PNG, mimeType: 'image/png' }]
  const structuredContent = { name: 'dot', images: [{ data }] }
  const shown = { name: 'dot', images: [{ data: expected }] }
  const media = [{ mimeType: 'image/png', data: PNG }]
  expect(mcpResult({ content, structuredContent })).toEqual({ ...shown, 'lango:media': media })
  expect(withoutBinaries({ content, structuredContent })).toMatchObject({ structuredContent: shown })
  expect(mcpResult({ content: [], structuredContent })).toEqual(structuredContent)
})

/** Calls two tools at once and then one, each with an image, and then answers. */
function play(): ScriptedProvider {
  const picture = (id: string) => ({ name: 'picture', id, args: {} })
  return new ScriptedProvider(
    ({ messages }) => {
      const results = messages.flatMap(({ parts }) => parts.filter(part => part.type === 'tool-result'))
      if (results.length === 0) return { toolCalls: [picture('a'), picture('b')] }
      return results.length === 2 ? { toolCalls: [picture('c')] } : { text: 'Three.' }
    },
    { id: 'play' },
  )
}

async function resumable(store: SessionStore, effect: ToolEffect) {
  const provider = play()
  const execute = () => mcpResult({ content: [{ type: 'image', mimeType: 'image/png', data: PNG }] })
  const picture = defineTool({ name: 'picture', description: 'A dot.', effect, onUnknown: 'retry', execute })
  const runtime = await createRuntime({
    store,
    providers: { play: provider },
    agent: { model: 'play/m', tools: [picture] },
    runs: { maxAttempts: 100 },
  })
  return { runtime, provider }
}

test.each<[ToolEffect]>([['read'], ['once']])(
  'a run that is cut off at any write has the images of its tools (%s) when it is resumed',
  async effect => {
    const store = await openStore('memory:')
    onTestFinished(() => store.close())
    for (let endsAfter = 1, isCut = true; isCut; endsAfter++) {
      expect(endsAfter).toBeLessThan(40)
      const process = crashable(store, { endsAfter })
      const { runtime } = await resumable(process.store, effect)
      const runId = `00000000-0000-4000-8000-${effect === 'read' ? '0' : '1'}${String(endsAfter).padStart(11, '0')}`
      const ended = runtime.start({ sessionId: runId, runId, text: 'Go.' }).then(async () => {
        for await (const _event of runtime.follow(runId));
        return true
      })
      isCut = (await Promise.race([process.over, ended])) !== true
      if (!isCut) await runtime.close()
      if (!isCut || !(await store.runs.findRun(runId))) continue
      const { runtime: second, provider } = await resumable(store, effect)
      await second.ready()
      const events: RunEvent[] = []
      for await (const event of second.follow(runId)) events.push(event)
      expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop', text: 'Three.' })
      for (const { messages } of provider.requests) {
        const results = messages.flatMap(({ parts }) => parts.filter(part => part.type === 'tool-result'))
        const image = { type: 'media', mimeType: 'image/png', data: PNG }
        expect(results.map(({ media }) => media)).toEqual(results.map(() => [image]))
      }
      await second.close()
    }
  },
)
