import { LlmAgent, type LlmRequest, type LlmResponse } from '@google/adk'
import { expect } from 'vitest'
import { ModelAdapter } from '../../src/adk/model/model-adapter.js'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import { AgentError } from '../../src/errors.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { openTestStore, runTurn } from '../support/adk-run.js'
import { requirement, scenario } from '../support/scenario.js'

function request(config?: LlmRequest['config']): LlmRequest {
  const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
  return { contents, toolsDict: {}, liveConnectConfig: {}, ...(config ? { config } : {}) }
}

async function answers(script: Script, stream: boolean): Promise<LlmResponse[]> {
  const adapter = new ModelAdapter({ provider: new ScriptedProvider(script), model: 'm' })
  const responses: LlmResponse[] = []
  for await (const response of adapter.generateContentAsync(request(), stream)) responses.push(response)
  return responses
}

async function sent(config?: LlmRequest['config']) {
  const provider = new ScriptedProvider([{ text: 'ok' }])
  const adapter = new ModelAdapter({ provider, model: 'm' })
  for await (const _ of adapter.generateContentAsync(request(config)));
  return provider.requests[0]?.messages
}

const SAID = { role: 'user', parts: [{ type: 'text', text: 'hi' }] }

requirement('SystemInstruction Forwarding', () => {
  scenario('SystemInstruction present in request', async () => {
    const messages = await sent({ systemInstruction: { parts: [{ text: 'be brief' }] } })
    expect(messages).toEqual([{ role: 'system', parts: [{ type: 'text', text: 'be brief' }] }, SAID])
  })

  scenario('SystemInstruction absent', async () => {
    expect(await sent()).toEqual([SAID])
    expect(await sent({})).toEqual([SAID])
  })

  scenario('Multi-part SystemInstruction', async () => {
    const systemInstruction = { role: 'user', parts: [{ text: 'be brief' }, { text: 'be kind' }] }
    const joined = [{ role: 'system', parts: [{ type: 'text', text: 'be brief\nbe kind' }] }, SAID]
    expect(await sent({ systemInstruction })).toEqual(joined)
    expect(await sent({ systemInstruction: [{ text: 'be brief' }, 'be kind'] })).toEqual(joined)
    expect(await sent({ systemInstruction: 'be brief\nbe kind' })).toEqual(joined)
  })
})

requirement('Model adapter streams LLM responses', () => {
  const hello: Script = [{ deltas: ['Hello ', 'world'] }]

  scenario('Non-streaming mode accumulates complete response', async () => {
    const responses = await answers(hello, false)
    expect(responses).toHaveLength(1)
    expect(responses[0]).toMatchObject({ partial: false, turnComplete: true })
    expect(responses[0]?.content?.parts?.[0]?.text).toBe('Hello world')
  })

  scenario('Non-streaming mode accumulates tool calls', async () => {
    const responses = await answers([{ toolCalls: [{ id: 'c1', name: 'exec', args: { cmd: 'ls' } }] }], false)
    expect(responses).toHaveLength(1)
    expect(responses[0]).toMatchObject({ partial: false, turnComplete: true })
    expect(responses[0]?.content?.parts).toEqual([
      { functionCall: { id: 'c1', name: 'exec', args: { cmd: 'ls' } } },
    ])
  })

  scenario('Streaming mode yields partial events and complete final', async () => {
    const responses = await answers(hello, true)
    expect(responses.map(({ partial, content }) => [partial, content?.parts?.[0]?.text])).toEqual([
      [true, 'Hello '],
      [true, 'world'],
      [false, 'Hello world'],
    ])
    expect(responses.at(-1)?.turnComplete).toBe(true)
  })

  scenario('Provider error propagates correctly', async () => {
    const error = new AgentError('provider-rejected', 'The provider said no.')
    for (const stream of [true, false]) {
      await expect(answers([{ text: 'half', error }], stream)).rejects.toBe(error)
    }
    // In a run ADK makes an event of it and goes no further.
    const store = await openTestStore('memory')
    const model = new ModelAdapter({ provider: new ScriptedProvider([{ error }]), model: 'm' })
    const sessions = new SessionServiceAdapter(store)
    const events = await runTurn({ agent: new LlmAgent({ name: 'agent', model }), sessions, message: 'hi' })
    expect(events.map(event => event.errorMessage)).toEqual(['The provider said no.'])
    await store.close()
  })
})
