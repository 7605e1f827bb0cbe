/**
 * What a resumed run costs: a run with so many stored tool steps, whose process ended while the model was asked for the
 * last one, is continued by another runtime on the same SQLite file. Everything that is stored comes from the store, and
 * the model is asked once. The yardstick is what bare ADK takes for as many steps in memory, with a model that answers
 * at once: the replay drives ADK through the run again, so it cannot be faster than that.
 *
 * How soon a client learns that the run of a killed server is continued is measured with real servers.
 *
 *     npm run bench -- replay [--json] [--only steps,servers]
 */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LlmResponse } from '@google/adk'
import { BaseLlm, FunctionTool, InMemorySessionService, LlmAgent, Runner } from '@google/adk'
import { z } from 'zod'
import { createRuntime } from '../src/runtime/runtime.js'
import type { SessionStore } from '../src/session/session-store.js'
import { openStore } from '../src/store/open-store.js'
import { ScriptedProvider, type ScriptStep } from '../src/testing/scripted-provider.js'
import { defineTool } from '../src/tool.js'
import { crashable } from '../test/support/crashable-store.js'
import { interleaved, spread } from './support/interleaved.js'
import { QUESTION } from './support/one-tool-agent.js'
import { Report } from './support/report.js'
import { measureServers } from './support/resumed-servers.js'

const SIZES = [100, 1000]
/** What a resumed run of the largest size may take beyond ADK. */
const MOST_MS = 1000
const RUN = '00000000-0000-4000-8000-000000000001'
const ANSWER = 'It is in the second drawer from the top, under the envelopes.'

const parameters = z.object({ place: z.string() })
const found = (place: string) => ({ place, found: ['stamps', 'envelopes', 'a key'], at: 'the back' })

/** Calls the tool that many times, then answers. */
class CountingModel extends BaseLlm {
  calls = 0
  readonly #steps: number

  constructor(steps: number) {
    super({ model: 'counting' })
    this.#steps = steps
  }

  override async *generateContentAsync(): AsyncGenerator<LlmResponse, void> {
    const index = this.calls++
    const functionCall = { id: `call-${index}`, name: 'look', args: { place: `drawer ${index}` } }
    yield { content: { role: 'model', parts: [index < this.#steps ? { functionCall } : { text: ANSWER }] } }
  }

  override connect(): Promise<never> {
    return Promise.reject(new TypeError('not a live model'))
  }
}

/** How often the model was asked by the last run that was continued. */
let asked = 0
const report = new Report('replay')
const only = process.argv.includes('--only') ? process.argv[process.argv.indexOf('--only') + 1] : undefined
const isWanted = (part: string) => only?.split(',').includes(part) ?? true
const folder = await mkdtemp(join(tmpdir(), 'lango-bench-'))
try {
  if (isWanted('steps')) for (const steps of SIZES) await measure(steps)
  if (isWanted('servers')) await measureServers(report, folder)
} finally {
  await rm(folder, { recursive: true, force: true })
}
report.finish()

async function measure(steps: number): Promise<void> {
  report.progress(`a run of ${steps} stored tool steps is made …`)
  const file = join(folder, `${steps}.db`)
  await storeRun(file, steps)
  report.progress('resumed, and as many steps of ADK …')
  let sample = 0
  const sides = await interleaved(
    () => resume(file, join(folder, `${steps}-${sample++}.db`)),
    () => bareAdk(steps),
  )
  report.progress(spread(sides))
  report.atMost(`a run of ${steps} tool steps, resumed`, 'ms', sides.ours, sides.peer)
  report.figure(`model calls to continue the run of ${steps} tool steps`, 'calls', asked, 1)
  if (steps === SIZES.at(-1))
    report.atMost(
      `what that takes beyond ADK, against ${MOST_MS} ms`,
      'ms',
      sides.ours - sides.peer,
      MOST_MS,
      1,
    )
}

/** Executes a run up to the question for its last step; then its process has ended. */
async function storeRun(file: string, steps: number): Promise<void> {
  const store = await openStore(`sqlite:${file}?sync=normal`)
  const process = crashable(store)
  const provider = new ScriptedProvider(
    async (_request, index) => {
      if (index < steps) return callOf(index)
      await process.crash()
      return new Promise<never>(() => {})
    },
    { id: 'script' },
  )
  const runtime = await runtimeOn(process.store, provider)
  await runtime.start({ runId: RUN, sessionId: 's', text: QUESTION })
  await process.over
  await store.close()
}

/** The processor time from the request to continue the run to its end, in milliseconds. */
async function resume(file: string, copy: string): Promise<number> {
  await copyFile(file, copy)
  const store = await openStore(`sqlite:${copy}`)
  const provider = new ScriptedProvider([{ text: ANSWER }], { id: 'script' })
  const runtime = await runtimeOn(store, provider)
  const taken = cpuTime()
  await runtime.resume(RUN)
  let finishReason: string | undefined
  for await (const event of runtime.follow(RUN))
    if (event.type === 'run-finish') finishReason = event.finishReason
  const takenMs = taken()
  await runtime.close()
  await store.close()
  asked = provider.requests.length
  if (finishReason !== 'stop' || asked !== 1)
    throw new RangeError(`The run ended with ${finishReason} after ${asked} model calls, not 1.`)
  return takenMs
}

function runtimeOn(store: SessionStore, provider: ScriptedProvider) {
  const look = defineTool({
    name: 'look',
    description: 'Looks somewhere',
    parameters,
    effect: 'once',
    execute: ({ place }) => found(place),
  })
  return createRuntime({
    store,
    providers: { script: provider },
    agent: {
      name: 'agent',
      model: 'script/m',
      instruction: 'You help people find things.',
      maxTurns: 5000,
      tools: [look],
    },
    adk: { runConfig: { maxLlmCalls: 5000 } },
    history: { maxMessages: 10_000 },
  })
}

function callOf(index: number): ScriptStep {
  return { toolCalls: [{ id: `call-${index}`, name: 'look', args: { place: `drawer ${index}` } }] }
}

/** The processor time that ADK takes for that many tool steps and an answer. */
async function bareAdk(steps: number): Promise<number> {
  const sessionService = new InMemorySessionService()
  const look = new FunctionTool({
    name: 'look',
    description: 'Looks somewhere',
    parameters,
    execute: ({ place }) => found(place),
  })
  const model = new CountingModel(steps)
  const instruction = 'You help people find things.'
  const agent = new LlmAgent({ name: 'agent', model, instruction, tools: [look] })
  await sessionService.createSession({ appName: 'bench', userId: 'u', sessionId: 's' })
  const runner = new Runner({ appName: 'bench', agent, sessionService })
  const newMessage = { role: 'user', parts: [{ text: QUESTION }] }
  const taken = cpuTime()
  const runConfig = { maxLlmCalls: 5000 }
  for await (const _event of runner.runAsync({ userId: 'u', sessionId: 's', newMessage, runConfig }));
  const takenMs = taken()
  if (model.calls !== steps + 1) throw new RangeError(`ADK called the model ${model.calls} times.`)
  return takenMs
}

/** Milliseconds of processor time from now on: what else runs on the machine changes them less than the clock. */
function cpuTime(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
}
