import { expect, test } from 'vitest'
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

test('a JSON answer begins at the number of its first character, however the blanks before it were cut', async () => {
  const pieces = await answered(
    { type: 'text', text: '\n ', at: 2, textSeq: 3 },
    { type: 'text', text: ' {"a', at: 4, textSeq: 7 },
  )
  const whole = await answered({ type: 'text', text: '\n  {"a', at: 2, textSeq: 7 })
  expect(pieces).toEqual([{ type: 'text', text: '{"a', at: 5, textSeq: 7 }])
  expect(whole).toEqual(pieces)
})
