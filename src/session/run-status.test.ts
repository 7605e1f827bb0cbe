import { expect, test } from 'vitest'
import type { NewEntry } from './log-store.js'
import { type RunStatus, transition } from './run-status.js'

type Told = Parameters<typeof transition>[1]

const QUEUED: RunStatus = { state: 'queued' }
const begun: Told = { kind: 'begun', message: { role: 'user', content: 'Pay.', timestamp: 0 } }
const attempt: Told = { kind: 'attempt' }
const answer: Told = { kind: 'answer', message: { role: 'assistant', content: 'Done.', timestamp: 0 } }
const left = (pause: string): Told => ({ kind: 'notice', data: { pause } })
const ended = (...events: NonNullable<NewEntry['events']>): Told => ({ kind: 'ended', events })

test.each<[string, readonly Told[], RunStatus]>([
  ['nothing', [], QUEUED],
  ['a beginning', [begun], { state: 'running', attempt: 1 }],
  ['a crash', [begun, attempt], { state: 'running', attempt: 2 }],
  ['two crashes', [begun, attempt, attempt], { state: 'running', attempt: 3 }],
  ['progress after a crash', [begun, attempt, answer], { state: 'running', attempt: 1 }],
  [
    'an answer of a person after a crash',
    [
      begun,
      attempt,
      { kind: 'notice', events: [{ seq: 9, type: 'approval-answer', id: 'c', answer: 'once' }] },
    ],
    { state: 'running', attempt: 1 },
  ],
  [
    'a request after a crash',
    [begun, attempt, { kind: 'request', data: {} }],
    { state: 'running', attempt: 2 },
  ],
  ['a question', [begun, left('waiting')], { state: 'waiting', attempt: 1, isBetween: false }],
  ['the end of a round', [begun, left('between')], { state: 'waiting', attempt: 1, isBetween: true }],
  ['a post', [begun, left('waiting'), { kind: 'reply' }], { state: 'waiting', attempt: 1, isBetween: false }],
  ['an answer to a question', [begun, left('waiting'), attempt], { state: 'running', attempt: 1 }],
  ['a handover', [begun, left('handover')], { state: 'handover', attempt: 1 }],
  [
    'a handover of a second attempt',
    [begun, attempt, left('handover'), attempt],
    { state: 'running', attempt: 2 },
  ],
  ['a pause that is unknown', [begun, left('nap')], { state: 'running', attempt: 1 }],
  [
    'an end',
    [begun, ended({ seq: 4, type: 'run-finish', finishReason: 'stop' })],
    { state: 'finished', reason: 'stop' },
  ],
  ['an end that was pruned', [begun, ended()], { state: 'finished' }],
  [
    'an end before its beginning',
    [ended({ seq: 2, type: 'run-finish', finishReason: 'aborted' })],
    { state: 'finished', reason: 'aborted' },
  ],
  ['what comes after an end', [begun, ended(), attempt, answer], { state: 'finished' }],
])('the status of a run after %s', (_name, entries, status) => {
  expect(entries.reduce(transition, QUEUED)).toEqual(status)
})
