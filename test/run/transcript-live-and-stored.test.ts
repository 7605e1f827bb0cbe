// Real runs: what their events show is what their stored messages show later.
import { expect, onTestFinished, test } from 'vitest'
import { AgentError } from '../../src/errors.js'
import type { RunEvent } from '../../src/run/run-event.js'
import type { RunInput } from '../../src/run/run-host.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { type Script, ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool, type OnUnknown, type OutcomeAnswer } from '../../src/tool.js'
import { applyRunEvent, newRunTranscript, type RunTranscript } from '../../src/transcript/from-events.js'
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

/** Stops the run that is played. */
let stopRun = () => {}

/** The first call takes effect and is stopped before it answers. */
const pay = (onUnknown: OnUnknown) => {
  let calls = 0
  return defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object', properties: {} },
    onUnknown,
    execute: () => {
      calls += 1
      if (calls > 1) return { paid: true }
      stopRun()
      return new Promise(() => {})
    },
  })
}

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
  'an abort while a tool runs that must run once': {
    script: [{ toolCalls: [{ name: 'pay' }] }],
    options: { agent: { name: 'root', model: 'play/m', tools: [pay('tell')] } },
    shows: ['tool pay unknown', 'mark stopped'],
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

interface Played {
  run: RunTranscript
  stored: TranscriptItem[]
}

/** A run as its events show it, and as its stored messages do. */
async function play(
  runtime: Runtime,
  input: Partial<RunInput>,
  onEvent: (event: RunEvent) => void = () => {},
): Promise<Played> {
  const afterSeq = (await runtime.store.describeSession(KEY))?.totalMessages ?? 0
  let run = newRunTranscript({ runId: '', afterSeq })
  const abort = new AbortController()
  stopRun = () => abort.abort()
  for await (const event of runtime.run({ sessionId: 's', text: 'go', signal: abort.signal, ...input })) {
    if (event.type === 'run-start') run = newRunTranscript({ runId: event.runId, afterSeq })
    // As a page gets it.
    run = applyRunEvent(run, JSON.parse(JSON.stringify(event)) as RunEvent)
    onEvent(event)
  }
  const [user, ...stored] = fromMessages(await runtime.messages(KEY, { afterSeq }), [run.notes])
  expect(user).toMatchObject({ kind: 'user', text: 'go' })
  return { run, stored }
}

const bare = (items: readonly TranscriptItem[]) =>
  items.filter(({ kind }) => kind !== 'footer').map(({ key: _key, ...item }) => item)

test.each(Object.entries(SCENES))(
  'live and stored items are the same: %s',
  async (_name, { script, options, input, abortAfter, shows }) => {
    const agent = { name: 'root', model: 'play/m', tools: [echo, deploy, hang] }
    const providers = { play: new ScriptedProvider(script, { id: 'play' }) }
    const runtime = await createRuntime({ store: 'memory:', providers, agent, ...options })
    onTestFinished(() => runtime.close())
    const { run, stored } = await play(runtime, input ?? {}, ({ type }) => {
      if (type === abortAfter) stopRun()
    })
    expect(run.items.map(inWords)).toEqual(shows)
    expect(bare(stored)).toEqual(bare(run.items))
  },
)

const ANSWERS: [OutcomeAnswer, string][] = [
  ['happened', 'tool pay done'],
  ['run', 'tool pay done'],
  ['leave', 'tool pay unknown'],
]

test.each(ANSWERS)(
  'a repeated call with an unknown outcome, about which a person says: %s',
  async (answer, shows) => {
    const script = [{ toolCalls: [{ name: 'pay' }] }, { toolCalls: [{ name: 'pay' }] }, { text: 'Done.' }]
    const providers = { play: new ScriptedProvider(script, { id: 'play' }) }
    const agent = { name: 'root', model: 'play/m', tools: [pay('ask')] }
    const runtime = await createRuntime({ store: 'memory:', providers, agent })
    onTestFinished(() => runtime.close())
    await play(runtime, {})
    const { run, stored } = await play(runtime, {}, event => {
      if (event.type === 'tool-unknown' && event.asks) void runtime.answer(event.runId, event.id, answer)
    })
    expect(run.items.map(inWords)).toEqual([shows, 'text Done.'])
    expect(run.items[0]).toMatchObject({ outcome: { answer, runId: run.runId } })
    expect(bare(stored)).toEqual(bare(run.items))
  },
)
