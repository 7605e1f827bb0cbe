/** Scenarios for the cuts: each in an app of its own. */
import { randomUUID } from 'node:crypto'
import type { Entry, RunRow } from '../../../src/session/log-store.js'
import type { SessionKey } from '../../../src/session/message.js'
import { type Act, acts, type Scenario, type Script } from './cut-harness.js'
import { questionOf, type Step } from './miniature-agent.js'

type Parts = Omit<Scenario, 'name' | 'key' | 'nested'> & { readonly nested?: readonly SessionKey[] }

/** Conditions of acts. */
const entryOf = (runId: string, kind: Entry['kind'], step: number) => (entries: readonly Entry[]) =>
  entries.some(entry => entry.runId === runId && entry.kind === kind && entry.data?.step === step)
const isWaiting = (runId: string) => (_: readonly Entry[], runs: readonly RunRow[]) =>
  runs.some(run => run.runId === runId && run.state === 'waiting')

function reply(runId: string, step: number, when: Act['when'], name = 'reply'): Act {
  const key = `${name} ${runId} ${step}`
  const about = questionOf(runId, step)
  return acts.post({ runId, kind: 'reply', key, about, data: { step, text: `Yes to ${step}` } }, when)
}

function steer(runId: string, name: string, when: Act['when']): Act {
  return acts.post({ runId, kind: 'steer', key: `steer ${name}`, data: { text: name } }, when)
}

const answer = (text: string): Step => ({ do: 'answer', text })
const pay = (...payments: string[]): Step => ({ do: 'pay', payments })
const ask = (text: string): Step => ({ do: 'ask', text })

/** A waiting run whose reply came is continued; so its question is the current one. */
const afterPause = (runId: string, step: number) => (entries: readonly Entry[], runs: readonly RunRow[]) =>
  entryOf(runId, 'question', step)(entries) && isWaiting(runId)(entries, runs)

const SCENARIOS: Record<string, (key: SessionKey, runs: [string, string]) => Parts> = {
  'an answer': (key, [runId]) => one(key, { runId, steps: [answer('Hello')] }),

  'a payment between answers': (key, [runId]) =>
    one(key, { runId, steps: [answer('I pay'), pay('rent'), answer('Paid')] }),

  'the same payment twice and three payments in one answer': (key, [runId]) =>
    one(key, { runId, steps: [pay('tip', 'tip'), pay('rent', 'gas', 'water')] }),

  'a payment between answers, in writes that the store numbers': (key, [runId]) => ({
    ...one(key, { runId, steps: [answer('I pay'), pay('rent'), answer('Paid')] }),
    isCounted: true,
  }),

  'two questions, in writes that the store numbers': (key, [runId]) => ({
    ...one(key, { runId, steps: [ask('First?'), ask('Second?')] }, [
      reply(runId, 0, afterPause(runId, 0)),
      reply(runId, 1, entryOf(runId, 'question', 1)),
    ]),
    isCounted: true,
  }),

  'a read tool': (key, [runId]) =>
    one(key, { runId, steps: [answer('I look'), { do: 'read', text: 'It rains' }, answer('It rains')] }),

  'a question that is answered after the pause, twice': (key, [runId]) =>
    one(key, { runId, steps: [ask('First?'), pay('rent'), ask('Second?')] }, [
      reply(runId, 0, afterPause(runId, 0)),
      reply(runId, 2, afterPause(runId, 2)),
    ]),

  'a reply between the question and the pause': (key, [runId]) =>
    one(key, { runId, steps: [answer('Well'), ask('May I?'), answer('Thanks')] }, [
      reply(runId, 1, entryOf(runId, 'question', 1)),
    ]),

  'two replies to one question, and another question': (key, [runId]) =>
    one(key, { runId, steps: [ask('May I?'), ask('Really?')] }, [
      reply(runId, 0, afterPause(runId, 0)),
      reply(runId, 0, entryOf(runId, 'question', 0), 'early'),
      reply(runId, 1, afterPause(runId, 1)),
    ]),

  'state that is there at the start is changed and removed': (key, [runId]) => ({
    ...one(key, {
      runId,
      steps: [
        { do: 'state', state: { counter: 1, 'user:name': 'Ann', 'app:theme': 'dark' } },
        answer('Noted'),
        { do: 'state', state: { counter: 2 }, removes: ['old', 'user:old', 'app:old'] },
      ],
    }),
    state: {
      before: { counter: 0, old: 'x', 'user:old': 'x', 'app:old': 'x' },
      after: { counter: 2, 'user:name': 'Ann', 'app:theme': 'dark' },
    },
  }),

  'messages of nested sessions': (key, [runId]) => {
    const nested = ['inner', 'other'].map(sessionId => ({ ...key, sessionId }))
    const [inner = key, other = key] = nested
    const steps: Step[] = [
      { do: 'nested', text: 'Inside', nested: inner },
      answer('Outside'),
      { do: 'nested', text: 'Elsewhere', nested: other },
      { do: 'nested', text: 'Inside again', nested: inner },
    ]
    return { ...one(key, { runId, steps }), nested }
  },

  'a stop while the run works': (key, [runId]) =>
    one(key, { runId, steps: [answer('One'), pay('rent'), answer('Two')] }, [
      acts.post({ runId, kind: 'stop', key: 'stop' }, entryOf(runId, 'answer', 0)),
    ]),

  'a stop of a run that waits': (key, [runId]) =>
    one(key, { runId, steps: [ask('May I?'), answer('Thanks')] }, [
      acts.post({ runId, kind: 'stop', key: 'stop' }, afterPause(runId, 0)),
    ]),

  'several posts at once, at work and at the end': (key, [runId]) =>
    one(key, { runId, steps: [answer('One'), answer('Two')] }, [
      ...['a', 'b'].map(name => steer(runId, name, entryOf(runId, 'answer', 0))),
      steer(runId, 'c', entryOf(runId, 'answer', 1)),
      // After the last one was used, the process is about to end the run.
      steer(runId, 'd', entries => entries.filter(({ kind }) => kind === 'event').length === 3),
    ]),

  'a stop of a run that has ended': (key, [runId]) =>
    one(key, { runId, steps: [answer('One')] }, [
      acts.post({ runId, kind: 'stop', key: 'stop' }, (_, runs) =>
        runs.some(({ state }) => state === 'finished'),
      ),
    ]),

  'two runs on one session': (key, [first, second]) =>
    two(key, [
      { runId: first, steps: [answer('One'), pay('rent'), answer('Two')] },
      { runId: second, steps: [answer('Three'), pay('gas')] },
    ]),

  'two runs on one session under one lease': (key, [first, second]) => ({
    ...two(key, [
      { runId: first, steps: [answer('One'), answer('Two')] },
      { runId: second, steps: [answer('Three')] },
    ]),
    keepsLease: true,
  }),

  'a run behind one that waits': (key, [first, second]) => {
    const scripts = [
      { runId: first, steps: [answer('One'), ask('May I?')] },
      { runId: second, steps: [answer('Two')] },
    ] as const
    const both = two(key, scripts)
    return { ...both, acts: [...both.acts, reply(first, 1, afterPause(first, 1))] }
  },

  'a run that is accepted while another one waits': (key, [first, second]) => {
    const scripts = [
      { runId: first, steps: [ask('May I?'), answer('One')] },
      { runId: second, steps: [answer('Two')] },
    ] as const
    return {
      scripts,
      acts: [
        acts.accept(key, scripts[0]),
        acts.accept(key, scripts[1], isWaiting(first)),
        reply(first, 0, (_, runs) => runs.some(({ runId }) => runId === second)),
      ],
    }
  },

  'a queued run that is ended': (key, [first, second]) => {
    const scripts = [
      { runId: first, steps: [answer('One'), answer('Two')] },
      { runId: second, steps: [answer('Never')] },
    ] as const
    const both = two(key, scripts)
    return { ...both, acts: [...both.acts, acts.endQueued(second)] }
  },

  'a handover to another process': (key, [runId]) =>
    one(key, { runId, steps: [pay('rent'), { do: 'handover' }, pay('gas')] }),

  'a run that begins under the lease of a key without a session': (key, [runId]) => {
    const script = { runId, steps: [answer('One'), pay('rent')] }
    return { scripts: [script], acts: [acts.acceptUnderLease(key, script)] }
  },
}

function one(key: SessionKey, script: Script, others: readonly Act[] = []): Parts {
  return { scripts: [script], acts: [acts.accept(key, script), ...others] }
}

/** The second run is accepted while the first one works. */
function two(key: SessionKey, [first, second]: readonly [Script, Script]): Parts {
  return {
    scripts: [first, second],
    acts: [acts.accept(key, first), acts.accept(key, second, entryOf(first.runId, 'answer', 0))],
  }
}

export const SCENARIO_NAMES: readonly string[] = Object.keys(SCENARIOS)

/** A scenario in an app of this id. */
export function scenario(name: string, id: string = randomUUID().slice(0, 8)): Scenario {
  const key = { appName: `app-${id}`, userId: 'ann', sessionId: 'one' }
  const parts = SCENARIOS[name]?.(key, [`first-${id}`, `second-${id}`])
  if (!parts) throw new TypeError(`no scenario "${name}"`)
  return { nested: [], ...parts, name, key }
}
