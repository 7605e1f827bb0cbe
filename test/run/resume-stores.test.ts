// A run is cut off at a step and continued, on SQLite and PostgreSQL, by a process with the same store or with its own:
// two tools, a parallel batch, an agent inside a tool, an approval and a transfer, with every effect and every policy.
// Two cuts of each kind, chosen by a fixed seed; `npm run proof -- tests` takes all of them.
import { join } from 'node:path'
import { AgentTool, type BaseAgent, LlmAgent } from '@google/adk'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { Random } from '../../chaos/random.js'
import { ToolAdapter } from '../../src/adk/agent/tool-adapter.js'
import type { GenerateRequest } from '../../src/provider/provider.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { runScope } from '../../src/run/run-scope.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { StoredMessage } from '../../src/session/message.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import { defineTool, type Tool, type VerifyContext } from '../../src/tool.js'
import { type CrashableStore, crashable } from '../support/crashable-store.js'
import { gapsIn } from '../support/event-numbers.js'
import { eventually } from '../support/eventually.js'
import { createStoreDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG, PROOF } from '../support/tiers.js'

/** How the tools are declared. */
const POLICIES: Readonly<Record<string, Partial<Tool> & { isVerified?: true }>> = {
  read: { effect: 'read' },
  idempotent: { effect: 'idempotent' },
  'once, retry': { effect: 'once', onUnknown: 'retry' },
  'once, tell': { effect: 'once', onUnknown: 'tell' },
  'once, ask': { effect: 'once', onUnknown: 'ask' },
  'once, fail': { effect: 'once', onUnknown: 'fail' },
  'once, verify': { effect: 'once', isVerified: true },
}

/** After a write of the process, or inside a tool after its effect. */
interface Cut {
  at: 'write' | 'effect'
  nth: number
}

/** What lies outside the processes. */
class World {
  /** The results of the calls that took effect, by their keys. */
  readonly done = new Map<string, string>()
  readonly effects: string[] = []
  requests = 0
}

const say = (text: string): ScriptStep => ({ text, usage: { inputTokens: 10, outputTokens: 3 } })
const call = (...names: string[]): ScriptStep => ({
  text: `I call ${names.join(' and ')}.`,
  toolCalls: names.map(name => ({
    name,
    id: `${name}-1`,
    args: name === 'inner' ? { request: 'Look.' } : {},
  })),
  usage: { inputTokens: 10, outputTokens: 2 },
})

function script(request: GenerateRequest): ScriptStep {
  const text = JSON.stringify(request.messages.find(({ role }) => role === 'system') ?? '')
  const done = request.messages.flatMap(({ parts }) =>
    parts.flatMap(part => (part.type === 'tool-result' ? [part.name] : [])),
  )
  const next = (steps: readonly (readonly string[])[]) => steps.find(([first = '']) => !done.includes(first))
  const isHelper = text.includes('You are the helper')
  if (text.includes('You are inside')) return done.includes('audit') ? say('Audited.') : call('audit')
  const step = next(isHelper ? [['file']] : [['pay'], ['send', 'log'], ['inner'], ['deploy']])
  if (step) return call(...step)
  if (isHelper) return say('All is done.')
  const transfer = { name: 'transfer_to_agent', id: 't-1', args: { agentName: 'helper' } }
  return { toolCalls: [transfer], usage: { inputTokens: 1, outputTokens: 1 } }
}

interface Process {
  world: World
  policy: string
  /** Called when a tool has taken effect. */
  onEffect?(): Promise<void>
}

function toolOf(name: string, { world, policy, onEffect }: Process): ToolAdapter {
  const { isVerified, ...declared } = POLICIES[policy] ?? {}
  const resultOf = (key: string) => (world.done.has(key) ? { done: name } : undefined)
  const verify = (_args: unknown, { idempotencyKey }: VerifyContext) => resultOf(idempotencyKey)
  const tool = defineTool({
    name,
    description: name,
    parameters: z.object({}),
    ...declared,
    ...(name === 'deploy' ? { needsApproval: true } : {}),
    ...(isVerified ? { verify } : {}),
    execute: async (_args, { idempotencyKey }) => {
      // As a service that honours the key.
      if (!world.done.has(idempotencyKey)) world.effects.push(name)
      world.done.set(idempotencyKey, name)
      await onEffect?.()
      return { done: name }
    },
  } as Parameters<typeof defineTool>[0])
  return new ToolAdapter(tool, {
    approve: ({ args, context }) =>
      runScope.getStore()?.approve({ callId: context.callId, tool: name, args }, context.signal) ?? 'no',
  })
}

function agents(process: Process): BaseAgent {
  const agent = (name: string, instruction: string, tools: string[], more: object = {}) => {
    const own = tools.map(tool => toolOf(tool, process))
    return new LlmAgent({ name, model: 'play/m', instruction, tools: own, ...more })
  }
  const inner = agent('inner', 'You are inside.', ['audit'])
  const helper = agent('helper', 'You are the helper.', ['file'])
  const root = agent('root', 'You are the root.', ['pay', 'send', 'log', 'deploy'], { subAgents: [helper] })
  root.tools.push(new AgentTool({ agent: inner }))
  return root
}

async function runtimeOn(store: SessionStore, process: Process): Promise<Runtime> {
  const play = new ScriptedProvider(
    request => {
      process.world.requests += 1
      return script(request)
    },
    { id: 'play' },
  )
  const runtime = await createRuntime({
    store,
    providers: { play },
    rootAgent: agents(process),
    runs: { maxAttempts: 100 },
  })
  await runtime.ready()
  return runtime
}

interface Place {
  sessionId: string
  runId: string
}

/** Follows a run and answers what it asks. A person knows whether a call took effect. */
async function followed(runtime: Runtime, { runId }: Place, world: World): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of runtime.follow(runId)) {
    events.push(event)
    // One that is answered already is refused.
    if (event.type === 'approval-request') await runtime.answer(runId, event.id, 'once').catch(() => {})
    if (event.type === 'tool-unknown' && event.asks)
      await runtime
        .answer(runId, event.id, world.done.has(event.idempotencyKey) ? 'happened' : 'run')
        .catch(() => {})
  }
  return events
}

/** Messages without ids and times. */
async function historyOf(store: SessionStore, { sessionId }: Place): Promise<object[]> {
  const all: object[] = []
  for (const appName of ['lango', 'lango/inner']) {
    const key = { appName, userId: 'user', sessionId }
    if (!(await store.describeSession(key))) continue
    const messages = await store.readMessages(key, { limit: 500 })
    all.push(...messages.map(shown), { state: (await store.loadSession(key))?.state })
  }
  return all
}

function shown({ role, author, branch, content, toolCalls, extra }: StoredMessage): object {
  const calls = toolCalls?.map(({ id, name, input, output }) => ({ id, name, input, output }))
  return { role, author, branch, content, calls, actions: extra?.actions }
}

function reported(events: readonly RunEvent[]): string[] {
  const kinds = [
    'tool-call',
    'tool-result',
    'agent-transfer',
    'approval-request',
    'approval-answer',
    'run-finish',
  ]
  return events
    .filter(({ type }) => kinds.includes(type))
    .map(event => {
      // A nested answer that is asked for again is paid again.
      const { seq, durationMs, usage, sessionId, runId, ...rest } = event as RunEvent &
        Record<string, unknown>
      return JSON.stringify(rest)
    })
}

let places = 0

function newPlace(): Place {
  places += 1
  return { sessionId: `s${places}`, runId: `00000000-0000-4000-8000-${String(places).padStart(12, '0')}` }
}

/** The run without an interruption. */
async function whole(store: SessionStore, policy: string) {
  const world = new World()
  const place = newPlace()
  const watched = crashable(store)
  const runtime = await runtimeOn(watched.store, { world, policy })
  await runtime.start({ ...place, text: 'Go.' })
  const events = await followed(runtime, place, world)
  expect(events.at(-1)).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  await runtime.close()
  const history = await historyOf(store, place)
  return { world, events: reported(events), history, writes: watched.writes }
}

/** Runs until the process ends at the cut, or the run. */
async function cutOff(
  store: SessionStore,
  place: Place,
  { world, policy }: Process,
  cut: Cut,
): Promise<void> {
  const endsAfter = cut.at === 'write' ? cut.nth : Infinity
  const process: CrashableStore = crashable(store, { endsAfter })
  let effects = 0
  const onEffect = async () => {
    effects += 1
    if (cut.at !== 'effect' || effects !== cut.nth) return
    await process.crash()
    await new Promise(() => {})
  }
  const runtime = await runtimeOn(process.store, { world, policy, onEffect })
  void runtime
    .start({ ...place, text: 'Go.' })
    .then(() => followed(runtime, place, world))
    .catch(() => {})
  await Promise.race([process.over, eventually(() => isOver(store, place)).toBe(true)])
  await process.crash()
}

async function isOver(store: SessionStore, { runId }: Place): Promise<boolean> {
  return (await store.runs.findRun(runId))?.finished === true
}

const EFFECTS = 6

function allCuts(writes: number): Cut[] {
  return [
    ...Array.from({ length: writes - 1 }, (_, index): Cut => ({ at: 'write', nth: index + 1 })),
    ...Array.from({ length: EFFECTS }, (_, index): Cut => ({ at: 'effect', nth: index + 1 })),
  ]
}

/** One at a write and one at an effect. */
function someCuts(writes: number, seed: string): Cut[] {
  const random = new Random(seed)
  const all = allCuts(writes)
  return [random.pick(all.slice(0, writes - 1)), random.pick(all.slice(writes - 1))].flatMap(cut => cut ?? [])
}

async function newStore(driver: string): Promise<string> {
  if (driver === 'SQLite') return `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const { url, drop } = await createStoreDatabase()
  onTestFinished(drop)
  return url
}

const CASES = ['SQLite', 'PostgreSQL'].flatMap(driver =>
  Object.keys(POLICIES).map(policy => [policy, driver] as const),
)

/** Every policy on one store, and one policy on the other. */
const isShort = ([policy, driver]: readonly [string, string]) =>
  driver === 'SQLite' || policy === 'once, retry'

const TITLE = 'a run whose tools are declared as "%s" is continued on %s wherever it is cut off'
const TIMEOUT = { timeout: 1_800_000 }
test.each(CASES.filter(isShort))(TITLE, TIMEOUT, expectContinued)
test.each(CASES.filter(each => !isShort(each)))(TITLE, { ...LONG, ...TIMEOUT }, expectContinued)
test.each(CASES)(`${TITLE}, for every cut`, { ...PROOF, ...TIMEOUT }, expectAllContinued)

async function expectContinued(policy: string, driver: string): Promise<void> {
  const stage = await openStage(policy, driver)
  const cuts = someCuts(stage.reference.writes, `${driver} ${policy}`)
  let continued = 0
  for (const [index, cut] of cuts.entries())
    if (await continuedAfter({ ...stage, cut, isOther: index % 2 === 1 })) continued += 1
  expect(continued).toBeGreaterThan(0)
}

async function expectAllContinued(policy: string, driver: string): Promise<void> {
  const stage = await openStage(policy, driver)
  let continued = 0
  for (const cut of allCuts(stage.reference.writes))
    for (const isOther of [false, true]) if (await continuedAfter({ ...stage, cut, isOther })) continued += 1
  console.log(`${driver}, ${policy}: ${continued} runs cut off and continued`)
  expect(continued).toBeGreaterThan(0)
}

async function openStage(policy: string, driver: string) {
  const url = await newStore(driver)
  const store = await openStore(url)
  onTestFinished(() => store.close())
  return { url, store, policy, reference: await whole(store, policy) }
}

interface Continuation {
  store: SessionStore
  url: string
  isOther: boolean
  policy: string
  cut: Cut
  reference: Awaited<ReturnType<typeof whole>>
}

/** `false` when the run ended before its cut. */
async function continuedAfter({
  store,
  url,
  isOther,
  policy,
  cut,
  reference,
}: Continuation): Promise<boolean> {
  const where = `cut at ${cut.at} ${cut.nth}, continued by ${isOther ? 'another' : 'the same'} store`
  const world = new World()
  const place = newPlace()
  await cutOff(store, place, { world, policy }, cut)
  if (await isOver(store, place)) return false
  const own = isOther ? await openStore(url) : store
  const runtime = await runtimeOn(own, { world, policy })
  const events = await followed(runtime, place, world)
  await runtime.close()
  if (isOther) await own.close()
  expect(gapsIn(events), where).toEqual([])
  const asRead = policy === 'read' ? new Set(world.effects).size : world.effects.length
  expect(asRead, where).toBeLessThanOrEqual(reference.world.effects.length)
  const unknown = events.filter(event => event.type === 'tool-unknown')
  if (policy === 'once, fail' && unknown.length > 0) {
    expect(events.at(-2), where).toMatchObject({ type: 'error', error: { code: 'tool-outcome-unknown' } })
    return true
  }
  expect(events.at(-1), where).toMatchObject({ type: 'run-finish', finishReason: 'stop' })
  // What the model reads is another text where nobody knows the outcome, or a person has confirmed it.
  const isOpen = unknown.some(event => event.answer !== 'run' && !event.asks)
  if (isOpen && (policy === 'once, tell' || policy === 'once, ask')) return true
  expect([...new Set(world.effects)].sort(), where).toEqual([...reference.world.effects].sort())
  expect(await historyOf(store, place), where).toEqual(reference.history)
  expect(reported(events), where).toEqual(reference.events)
  return true
}
