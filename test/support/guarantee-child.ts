// guarantee-child.ts <store URL> <log file> <sound|broken>: begins a run for each guarantee and waits to be killed. With
// `broken` its store breaks each guarantee, in the session that is named after it. Prints `ready` when all runs hang.
import { readFileSync } from 'node:fs'
import type { RunOpening, RunStep, SavedStep } from '../../src/session/run-store.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { faultyStore } from './faulty-store.js'
import { createGuaranteeRuntime, firstRunOf } from './guarantee-agent.js'

const [url = '', log = '', mode = ''] = process.argv.slice(2)
const opened = await openStore(url)
const store = mode === 'broken' ? broken(opened) : opened
const runtime = await createGuaranteeRuntime({ store, log, hangs: true })
const start = (sessionId: string, text: string, more: object = {}) =>
  runtime.start({ sessionId, text: `${sessionId} ${text}`, ...more })

for (const session of ['accepted', 'once', 'ordered', 'survives', 'waits', 'ends', 'keyed', 'blind'])
  await start(session, 'first', { runId: firstRunOf(session) })
for await (const event of runtime.follow(firstRunOf('waits'))) {
  if (event.type !== 'approval-request') continue
  await runtime.answer(event.runId, event.id, 'once')
  break
}
await start('accepted', 'second')
for (const text of ['second', 'third']) await start('ordered', text)
await start('later', 'first', { runId: firstRunOf('later'), at: Date.now() + 3_600_000 })
const HANGING = ['accepted first 0', 'once first 0', 'survives first 1', 'send', 'pay_keyed', 'pay_blind']
while (!HANGING.every(line => readFileSync(log, 'utf8').includes(line)))
  await new Promise(resolve => setTimeout(resolve, 10))
console.log('ready')
setInterval(() => {}, 60_000)

/** Breaks the guarantee that a session is named after, and no other. */
function broken(sound: SessionStore): SessionStore {
  let late: RunOpening | undefined
  return faultyStore(sound, {
    openRun: async (openRun, opening, options) => {
      const { key, runId, message } = opening
      switch (message.content) {
        case 'accepted second':
          return { queued: 1 }
        case 'ordered second':
          late = opening
          return { queued: 1 }
        case 'ordered third': {
          const accepted = await openRun(opening, options)
          if (late) await openRun(late, options)
          return accepted
        }
        case 'once first':
          return openRun({ ...opening, runId: runId.replace('4000', '4001') }, options)
        case 'ends first':
          // No process serves this app.
          return openRun({ ...opening, key: { ...key, appName: 'elsewhere' } }, options)
        default:
          return openRun(opening, options)
      }
    },
    queueRun: (queueRun, opening) =>
      opening.dueAt === undefined ? queueRun(opening) : Promise.resolve({ dueAt: opening.dueAt }),
    runs: {
      saveStep: async (saveStep, step) => {
        if (step.key.sessionId === 'survives' && step.message?.role === 'tool') return { seq: 3 }
        if (step.key.sessionId === 'waits') return saveStep(withoutAnswer(step))
        if (step.key.sessionId === 'blind') return saveStep(withoutStart(step))
        const saved = await saveStep(step)
        return step.key.sessionId === 'keyed' ? withOtherKeys(saved) : saved
      },
      appendEvents: (appendEvents, key, runId, events) =>
        appendEvents(
          key,
          runId,
          events.filter(({ type }) => type !== 'approval-answer'),
        ),
      sendSignal: () => Promise.resolve(),
    },
  })
}

function withoutAnswer(step: RunStep): RunStep {
  return { ...step, events: step.events?.filter(({ type }) => type !== 'approval-answer') ?? [] }
}

/** The ledger has another number of the call than the tool, and so another key. */
function withOtherKeys({ calls = [], ...saved }: SavedStep): SavedStep {
  return { ...saved, calls: calls.map(call => ({ ...call, ordinal: call.ordinal + 1 })) }
}

/** The tool runs before its start is recorded. */
function withoutStart(step: RunStep): RunStep {
  const calls = step.calls?.map(change =>
    change.status === 'started' ? { ...change, status: 'intent' as const } : change,
  )
  return { ...step, ...(calls ? { calls } : {}) }
}
