import { expect, test } from 'vitest'
import { sumUsage } from '../../../session/usage.js'
import type { CompletionStep } from './completion-run.js'
import { jsonAnswer } from './json-answer.js'

async function answered(...steps: CompletionStep[]): Promise<CompletionStep[]> {
  const given = (async function* () {
    yield* steps
  })()
  const all: CompletionStep[] = []
  for await (const step of jsonAnswer(given, { isStreamed: true })) all.push(step)
  return all
}

const complete: CompletionStep = { type: 'complete', at: 9 }

test('a restart after a complete JSON answer takes nothing of it back', async () => {
  const text: CompletionStep = { type: 'text', text: '{"a":1}', at: 2, textSeq: 8 }
  const restart: CompletionStep = { type: 'restart', text: 0, reasoning: 0, at: 10 }
  expect(await answered(text, complete, restart)).toEqual([text, complete, restart])
})

test.each([
  ['blanks before the JSON', '\n {"a":1}'],
  ['words before the JSON', 'So: {"a":1}'],
])('%s: an answer in single characters has the same text as one in one piece', async (_, text) => {
  const characters = [...text].map(
    (each, at): CompletionStep => ({ type: 'text', text: each, at, textSeq: at }),
  )
  const whole: CompletionStep = { type: 'text', text, at: 0, textSeq: text.length - 1 }
  const end: CompletionStep = { type: 'end', at: 20, finish: 'stop', usage: sumUsage([]), output: { a: 1 } }
  const textOf = async (...steps: CompletionStep[]) =>
    (await answered(...steps)).map(step => (step.type === 'text' ? step.text : '')).join('')
  expect(await textOf(...characters, end)).toBe('{"a":1}')
  expect(await textOf(whole, end)).toBe('{"a":1}')
})

test('400,000 single characters that are not JSON take linear time', { timeout: 60_000 }, async () => {
  async function* characters(): AsyncGenerator<CompletionStep> {
    for (let at = 0; at < 400_000; at++) yield { type: 'text', text: 'a', at, textSeq: at }
  }
  for await (const step of jsonAnswer(characters(), { isStreamed: true })) expect(step).toBe('not reached')
})

test('a JSON answer begins at the number of its first character, however the blanks before it were cut', async () => {
  const pieces = await answered(
    { type: 'text', text: '\n ', at: 2, textSeq: 3 },
    { type: 'text', text: ' {"a', at: 4, textSeq: 7 },
  )
  const whole = await answered({ type: 'text', text: '\n  {"a', at: 2, textSeq: 7 })
  expect(pieces).toEqual([{ type: 'text', text: '{"a', at: 5, textSeq: 7 }])
  expect(whole).toEqual(pieces)
})
