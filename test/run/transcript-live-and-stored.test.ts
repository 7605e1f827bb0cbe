// Real runs: what their events show is what their stored messages show later.
import { expect, onTestFinished, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RunInput } from '../../src/run/run-host.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { applyRunEvent, newRunTranscript } from '../../src/transcript/from-events.js'
import { fromMessages } from '../../src/transcript/from-messages.js'
import type { TranscriptItem } from '../../src/transcript/item.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

const echo = defineTool({
  name: 'echo',
  description: 'Returns its argument, or fails.',
  parameters: { type: 'object', properties: { say: { type: 'string' } } },
  effect: 'read',
  execute: ({ say }) => (say === 'fail' ? { error: 'It failed.' } : { said: say }),
})

const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys.',
  parameters: { type: 'object', properties: { to: { type: 'string' } } },
  needsApproval: true,
  execute: ({ to }) => ({ deployed: to }),
})

/** Does not end by itself. */
const hang = defineTool({
  name: 'hang',
  description: 'Waits.',
  parameters: { type: 'object', properties: {} },
  effect: 'read',
  execute: (_args, { signal }) =>
    new Promise(resolve => signal.addEventListener('abort', () => resolve({ error: 'stopped' }))),
})

const says = (...texts: string[]) => texts.map(say => ({ name: 'echo', args: { say } }))

interface Scene {
  script: Script
  options?: Partial<RuntimeOptions>
  input?: Partial<RunInput>
  /** The type of the event after which the run is aborted. */
  abortAfter?: RunEvent['type']
  shows: string[]
}

const SCENES: Record<string, Scene> = {
  'text and reasoning': {
    script: [{ reasoning: 'Hm.', deltas: ['Hel', 'lo.'] }],
    shows: ['reasoning Hm.', 'text Hello.'],
  },
  'parallel tools, one of which fails, and text around them': {
    script: [{ text: 'Looking.', toolCalls: says('a', 'fail', 'c') }, { text: 'Done.' }],
    shows: ['text Looking.', 'tool echo done', 'tool echo failed', 'tool echo done', 'text Done.'],
  },
  'an approval that is given': {
    script: [{ toolCalls: [{ name: 'deploy', args: { to: 'x' } }] }, { text: 'Done.' }],
    input: { onApproval: () => 'once' },
    shows: ['tool deploy done once', 'text Done.'],
  },
  'an approval that is refused': {
    script: [{ toolCalls: [{ name: 'deploy', args: { to: 'x' } }] }, { text: 'Not done.' }],
    input: { onApproval: () => 'no' },
    shows: ['tool deploy failed no', 'text Not done.'],
  },
  'a transfer': {
    script: [
      { toolCalls: [{ name: 'transfer_to_agent', args: { agentName: 'helper' } }] },
      { text: 'I am the helper.' },
    ],
    options: {
      agent: { name: 'root', model: 'play/m', subAgents: [{ name: 'helper', description: 'Helps.' }] },
    },
    shows: ['mark transfer', 'text I am the helper.'],
  },
  'an abort while a tool runs': {
    script: [{ text: 'Wait.', toolCalls: [{ name: 'hang' }] }],
    abortAfter: 'tool-call',
    shows: ['text Wait.', 'tool hang unanswered', 'mark stopped'],
  },
  'an error of the provider after some text': {
    script: [{ text: 'Hel', error: new AgentError('provider-rejected', 'No.') }],
    shows: ['text Hel', 'error provider-rejected'],
  },
  'the turn limit': {
    script: (_request, index) => (index < 3 ? { toolCalls: says(`turn ${index}`) } : { text: 'Enough.' }),
    options: { agent: { name: 'root', model: 'play/m', tools: [echo], maxTurns: 3 } },
    shows: ['tool echo done', 'tool echo done', 'tool echo done', 'mark wrap-up', 'text Enough.'],
  },
}

function inWords(item: TranscriptItem): string {
  if (item.kind === 'tool') return ['tool', item.name, item.status, item.approval].filter(Boolean).join(' ')
  if (item.kind === 'mark') return `mark ${item.mark.type}`
  if (item.kind === 'error') return `error ${item.error.code}`
  return 'text' in item ? `${item.kind} ${item.text}` : item.kind
}

test.each(Object.entries(SCENES))('%s', async (_name, { script, options, input, abortAfter, shows }) => {
  const agent = { name: 'root', model: 'play/m', tools: [echo, deploy, hang] }
  const providers = { play: new ScriptedProvider(script, { id: 'play' }) }
  const runtime = await createRuntime({ store: 'memory:', providers, agent, ...options })
  onTestFinished(() => runtime.close())
  const abort = new AbortController()
  let run = newRunTranscript({ runId: '', afterSeq: 0 })
  for await (const event of runtime.run({ sessionId: 's', text: 'go', signal: abort.signal, ...input })) {
    if (event.type === 'run-start') run = newRunTranscript({ runId: event.runId, afterSeq: 0 })
    // As a page gets it.
    run = applyRunEvent(run, JSON.parse(JSON.stringify(event)) as RunEvent)
    if (event.type === abortAfter) abort.abort()
  }
  expect(run.items.map(inWords)).toEqual(shows)
  const [user, ...stored] = fromMessages(await runtime.messages(KEY), [run.notes])
  expect(user).toMatchObject({ kind: 'user', text: 'go' })
  const bare = (items: readonly TranscriptItem[]) =>
    items.filter(({ kind }) => kind !== 'footer').map(({ key: _key, ...item }) => item)
  expect(bare(stored)).toEqual(bare(run.items))
})
