import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import type { RunEvent, RunEventBody, RunRepair } from '../run/run-event.js'
import { RunPrinter } from './run-printer.js'

function printed(bodies: readonly RunEventBody[], streams: boolean): { out: string; err: string } {
  let out = ''
  let err = ''
  const stderr = new Writable({
    write(chunk, _encoding, done) {
      err += String(chunk)
      done()
    },
  })
  const write = (text: string) => {
    out += text
  }
  const printer = new RunPrinter(
    { stderr, env: {}, color: true },
    {
      streams,
      quiet: false,
      isTerminal: false,
      clean: undefined,
      write,
      demoNotice: '',
    },
  )
  for (const [index, body] of bodies.entries())
    printer.show({ ...body, sessionId: 's', runId: 'r', seq: index + 1 } as RunEvent)
  return { out, err }
}

const say = (text: string): RunEventBody => ({ type: 'text-delta', author: 'root', text })
const events: RunEventBody[] = [
  say('The ans'),
  { type: 'run-resumed', attempt: 2, replayedSteps: 1 },
  { type: 'step-restart', step: 2 },
  say('The answer.'),
]

test('a stream to a pipe says on standard error that the answer restarts, which begins on a new line', () => {
  const { out, err } = printed(events, true)
  expect(out).toBe('The ans\nThe answer.')
  expect(err).toContain('the run was resumed')
  expect(err).toContain('the answer restarts: discard the text since the last complete step')
})

test('a break of the prompt prefix is a notice of its own, and no change of the history', () => {
  const change = { step: 'pair-calls', kind: 'synthesize-result', at: 1, detail: 'One was added.' }
  const broken = { step: 'steady', kind: 'prefix-break', at: 0, detail: '.', reason: 'model', tokens: 1200 }
  const lost = 'Prompt cache: about 1,200 tokens lost (the model changed)'
  const notice = (repairs: RunRepair[]) =>
    printed([{ type: 'repair', model: 'a/b', profile: 'openai-chat', repairs }], false).err.trim()
  expect(notice([change, broken])).toBe(`history repaired for a/b: 1 change; ${lost}`)
  expect(notice([broken])).toBe(lost)
})

test('without streaming, nothing of an unfinished answer is printed', () => {
  expect(printed(events, false).out).toBe('')
})

const two: RunEventBody[] = [
  { type: 'text-delta', author: 'plan', text: 'A ' },
  { type: 'text-delta', author: 'plan', text: 'plan.' },
  { type: 'text-delta', author: 'work', text: 'Done.' },
]

test('answers of consecutive authors are on lines of their own', () => {
  expect(printed(two, true).out).toBe('A plan.\nDone.')
})

test('without streaming, what was said before the answer of another author is a notice', () => {
  const { out, err } = printed(two, false)
  expect(out).toBe('')
  expect(err).toContain('plan: A plan.')
  expect(err).not.toContain('Done.')
})
