import { expect, test } from 'vitest'
import { OpenQuestions } from '../run/open-questions.js'
import type { RunEvent, RunEventBody } from '../run/run-event.js'
import { emptyUsage } from '../session/usage.js'
import { questionText } from './questions.js'

const args = { amount: 5 }
const ask: RunEventBody = { type: 'approval-request', id: 'c1', name: 'pay', args }
const unknown: RunEventBody = {
  type: 'tool-unknown',
  author: 'root',
  id: 'c2',
  name: 'pay',
  args,
  idempotencyKey: 'key',
  policy: 'ask',
  asks: true,
}
const finish = (finishReason: 'stop' | 'waiting'): RunEventBody => {
  return { type: 'run-finish', finishReason, text: '', turns: 0, delegations: 0, usage: emptyUsage() }
}

function open(...bodies: RunEventBody[]): string[] {
  const questions = new OpenQuestions()
  for (const [index, body] of bodies.entries())
    questions.add({ ...body, sessionId: 's', runId: 'r', seq: index + 1 } as RunEvent)
  return questions.list.map(question => `${question.callId}: ${questionText(question)}`)
}

const approval = 'c1: pay needs approval (once, always or no)'
const outcome = 'c2: it is not known whether pay took effect (happened, run or leave)'

test.each<[string, RunEventBody[], string[]]>([
  ['both kinds, in order', [ask, unknown], [approval, outcome]],
  [
    'an approval with a reason',
    [{ ...ask, reason: 'It is a lot.' }],
    ['c1: It is a lot. pay needs approval (once, always or no)'],
  ],
  ['an answered approval', [ask, { type: 'approval-answer', id: 'c1', name: 'pay', answer: 'once' }], []],
  ['an answered outcome', [unknown, { ...unknown, answer: 'run' }], []],
  ['an outcome that is not asked about', [{ ...unknown, asks: false }], []],
  ['the end of the run', [ask, unknown, finish('stop')], []],
  ['a run that waits', [ask, finish('waiting')], [approval]],
  [
    'a second request after a resume',
    [ask, { type: 'run-resumed', attempt: 1, replayedSteps: 1 }, ask],
    [approval],
  ],
  [
    "a confirmation of ADK's",
    [
      { type: 'tool-call', author: 'root', id: 'c1', name: 'adk_request_confirmation', args, pending: true },
      ask,
    ],
    [approval],
  ],
  [
    'a long-running call without a result',
    [{ type: 'tool-call', author: 'root', id: 'c1', name: 'order', args, pending: true }],
    ['c1: order waits for its result (an object)'],
  ],
  [
    'a question of a node as a tool, whose call is none',
    [
      { type: 'tool-call', author: 'root', id: 'c1', name: 'order', args, pending: true },
      {
        type: 'tool-call',
        author: 'order',
        id: 'c2',
        name: 'adk_request_input',
        args: { message: 'How many?' },
        pending: true,
        inside: ['c1'],
      },
    ],
    ['c2: the workflow asks: How many?'],
  ],
  [
    'a confirmation inside a node as a tool, whose call is none',
    [
      { type: 'tool-call', author: 'root', id: 'c0', name: 'order', args, pending: true },
      {
        type: 'tool-call',
        author: 'order',
        id: 'c1',
        name: 'adk_request_confirmation',
        args,
        pending: true,
        inside: ['c0'],
      },
      ask,
    ],
    [approval],
  ],
  [
    'a question of a workflow',
    [
      {
        type: 'tool-call',
        author: 'step',
        id: 'c1',
        name: 'adk_request_input',
        args: { message: 'How many?' },
        pending: true,
      },
    ],
    ['c1: the workflow asks: How many?'],
  ],
])('open questions: %s', (_name, bodies, expected) => {
  expect(open(...bodies)).toEqual(expected)
})
