// Many turns on strict servers, through everything that may change a request: nothing is refused, and what a model
// thought is sent back wherever its prefix held.
import { LlmAgent } from '@google/adk'
import { afterEach, expect, test } from 'vitest'
import { ToolAdapter } from '../../src/adk/agent/tool-adapter.js'
import type { HistoryOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import type { StrictProfile } from '../../src/testing/strict/profile.js'
import type { RequestSummary, ScriptStep } from '../../src/testing/strict/script.js'
import { defineTool } from '../../src/tool.js'
import { strictTarget } from '../providers/strict-profiles.js'
import { crashable } from '../support/crashable-store.js'
import { brokenPairs, pairsOf, type SentRecord } from '../support/steady.js'
import { LONG } from '../support/tiers.js'

const KEY = { appName: 'lango', userId: 'user', sessionId: 's' }

/** A conversation: its length, and the turns at which something changes. */
interface Course {
  turns: number
  newInstruction: number
  loop: number
  restart: number
  clerk: number
  cutOff: number
  /** Two turns from here on are answered by another model. */
  otherModel: number
  history?: HistoryOptions
}

/** Every change once, close together, with a token budget that is cut as often as in the whole course. */
const SHORT: Course = {
  ...{ turns: 12, newInstruction: 3, loop: 4, restart: 5, clerk: 6, cutOff: 8, otherModel: 9 },
  history: { maxMessageTokenBudget: 6000 },
}
const WHOLE: Course = {
  ...{ turns: 60, newInstruction: 20, loop: 25, restart: 30, clerk: 35, cutOff: 40, otherModel: 45 },
}

/** In either course: the cuts of the budget, and what the run that was cut off and the instruction cost. */
const MOST_BREAKS = 6

const servers: StrictProvider[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

/** Thinks, calls a tool (or two) after a question, and answers after the results. */
function think(request: RequestSummary, index: number): ScriptStep {
  const last = request.messages.at(-1)
  const isOver = request.toolChoice === 'none' || (last?.toolResults.length ?? 0) > 0
  const thinking = `I think about ${index}.`
  if (request.lastUserText.includes('loop') && request.toolChoice !== 'none')
    return { thinking, toolCalls: [{ name: 'look', args: { at: 'again' } }] }
  if (isOver) return { thinking, text: `Answer ${index}. ${'word '.repeat(150)}` }
  if (request.lastUserText.includes('clerk') && request.tools.some(tool => tool.name === 'transfer_to_agent'))
    return { thinking, toolCalls: [{ name: 'transfer_to_agent', args: { agentName: 'clerk' } }] }
  const calls = Array.from({ length: 1 + (index % 2) }, (_, place) => ({
    name: 'look',
    args: { at: `${index}-${place}` },
  }))
  return { thinking, toolCalls: calls }
}

const look = () =>
  new ToolAdapter(
    defineTool({
      name: 'look',
      description: 'Looks something up.',
      parameters: { type: 'object', properties: { at: { type: 'string' } } },
      effect: 'read',
      execute: ({ at }) => ({ at, found: 'a lamp and a bell '.repeat(60) }),
    }),
  )

interface Stage {
  main: StrictProvider
  other: StrictProvider
  profile: StrictProfile
  store: SessionStore
  course: Course
}

function runtimeOn(
  { main, other, profile, store, course: { history = {} } }: Stage,
  instruction: string,
  on = store,
): Promise<Runtime> {
  const target = strictTarget(profile, main.baseUrl)
  const second = strictTarget(profile === 'openai-chat' ? 'anthropic-4.6' : 'openai-chat', other.baseUrl)
  const model = `main/${target.model}`
  const clerk = new LlmAgent({
    name: 'clerk',
    description: 'Writes.',
    model,
    instruction: 'Write.',
    tools: [look()],
  })
  const rootAgent = new LlmAgent({ name: 'root', model, instruction, tools: [look()], subAgents: [clerk] })
  return createRuntime({
    store: on,
    providers: { main: target.provider, other: second.provider },
    rootAgent,
    runs: { resume: false },
    history,
  })
}

async function sentRequests(store: SessionStore): Promise<SentRecord[]> {
  const all: SentRecord[] = []
  for (const { runId } of (await store.runs.listRuns(KEY, { limit: 1000 })).toReversed())
    for (const { record } of await store.runs.readRequests(runId)) all.push(record as unknown as SentRecord)
  return all
}

async function reportedRepairs(store: SessionStore): Promise<string> {
  const all: unknown[] = []
  for (const { runId } of await store.runs.listRuns(KEY, { limit: 1000 }))
    all.push(...(await store.runs.readEvents(runId)).filter(event => event.type === 'repair'))
  return JSON.stringify(all)
}

/** Every answer of the root agent that was made since the last break of its lane has its thinking in the next request. */
function expectThoughts(requests: readonly SentRecord[]): void {
  const own = requests.filter(({ model, place }) => model.startsWith('main/') && place?.agent === 'root')
  const answers = ({ body }: SentRecord) =>
    (body as { messages: { role: string; content: { type: string }[] }[] }).messages.filter(
      ({ role }) => role === 'assistant',
    )
  let before = 0
  for (const [index, request] of own.entries()) {
    const isBreak = request.repairs.some(({ kind }) => kind === 'prefix-break')
    if (isBreak || index === 0) before = answers(request).length
    const fresh = answers(request).slice(before)
    // Another model's answers, which have no thinking of this one, say so in their numbers.
    const thinking = fresh.filter(({ content }) => content.some(({ type }) => type === 'thinking'))
    expect(fresh.length - thinking.length).toBeLessThanOrEqual(4)
    if (isBreak)
      expect(answers(request).some(({ content }) => content.some(({ type }) => type === 'thinking'))).toBe(
        false,
      )
  }
}

async function say(runtime: Runtime, text: string, model?: string): Promise<void> {
  await runtime.runAndCollect({ sessionId: KEY.sessionId, text, ...(model ? { model } : {}) })
}

/** A run whose process ends in the middle; the runtime given resumes it. */
async function cutOff(stage: Stage, instruction: string, runtime: Runtime): Promise<void> {
  const process = crashable(stage.store, { endsAfter: 4 })
  const dying = await runtimeOn(stage, instruction, process.store)
  const { runId } = await dying.start({ sessionId: KEY.sessionId, text: 'This one is cut off.' })
  const follow = async () => {
    for await (const _event of dying.follow(runId));
  }
  await Promise.race([follow(), process.over])
  await process.crash()
  await runtime.resume(runId)
  for await (const _event of runtime.follow(runId));
}

async function converse(stage: Stage, otherModel: string): Promise<void> {
  const { course } = stage
  let instruction = 'Be brief.'
  let runtime = await runtimeOn(stage, instruction)
  for (let turn = 0; turn < course.turns; turn++) {
    if (turn === course.newInstruction) instruction = 'Be brief and kind.'
    if (turn === course.newInstruction || turn === course.restart) {
      await runtime.close()
      runtime = await runtimeOn(stage, instruction)
    }
    if (turn === course.cutOff) await cutOff(stage, instruction, runtime)
    const text =
      turn === course.loop ? 'loop' : turn === course.clerk ? 'Ask the clerk.' : `Question ${turn}.`
    const isOther = turn === course.otherModel || turn === course.otherModel + 1
    await say(runtime, text, isOther ? otherModel : undefined)
  }
  await runtime.close()
}

/** Profiles of the models that the design names, and whether their thoughts are sent back. */
const TARGETS: readonly StrictProfile[] = [
  'anthropic-5.1',
  'kimi',
  'deepseek-v4',
  'gemini-3',
  'openai-responses',
]

test.each(TARGETS)('12 turns to %s: nothing is refused, and requests extend each other', profile =>
  expectSteady(profile, SHORT),
)

test.each(TARGETS)(
  '60 turns to %s: nothing is refused, and requests extend each other',
  { ...LONG, timeout: 240_000 },
  profile => expectSteady(profile, WHOLE),
)

async function expectSteady(profile: StrictProfile, course: Course): Promise<void> {
  const main = await startStrictProvider({ profile, script: think })
  const otherProfile = 'openai-chat'
  const other = await startStrictProvider({ profile: otherProfile, script: think })
  servers.push(main, other)
  const store = await openStore('memory:')
  const { model } = strictTarget(otherProfile, other.baseUrl)
  await converse({ main, other, profile, store, course }, `other/${model}`)
  expect(main.violations).toEqual([])
  expect(other.violations).toEqual([])
  const requests = await sentRequests(store)
  expect(brokenPairs(requests)).toEqual([])
  const reasons = pairsOf(requests).flatMap(pair => pair.breaks)
  expect(reasons).toContain('budget')
  expect(reasons.length).toBeLessThanOrEqual(MOST_BREAKS)
  // What the provider itself had to drop is reported in events: nothing that we sent was bound to another prefix.
  expect(await reportedRepairs(store)).not.toContain('prefix_binding_mismatch')
  if (profile === 'anthropic-5.1') expectThoughts(requests)
  await store.close()
}
