// A process is killed with SIGKILL while its tool pays. Whether the run is continued or ended, and whatever the model
// does afterwards, the bank pays once.
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import type { Tool } from '../../src/tool.js'
import { type Bank, openBank, paidAt, payment } from '../support/bank.js'
import { runScript } from '../support/child.js'
import { expireLeases } from '../support/expire-leases.js'
import { temporaryFolder } from '../support/temporary-folder.js'

/** The next turn after the kill: the model repeats the call. Returns what it was sent in that turn. */
async function payAgain(bank: Bank, resume: boolean, more: Partial<Tool>): Promise<string> {
  const store = `sqlite:${join(await temporaryFolder(), 'lango.db')}`
  const child = runScript('pay-and-die.ts', [store, 's', bank.url])
  expect((await child.ended).signal, child.errors()).toBe('SIGKILL')
  expect(bank.requests).toHaveLength(1)
  expireLeases(store)
  const again = [{ toolCalls: [{ id: 'c2', name: 'pay', args: { amount: 5 } }] }, { text: 'Done.' }]
  const provider = new ScriptedProvider(resume ? [{ text: 'I was interrupted.' }, ...again] : again, {
    id: 'play',
  })
  const runtime = await createRuntime({
    store,
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m', tools: [payment(bank.url, more)] },
    runs: { resume },
  })
  onTestFinished(() => runtime.close())
  const { text } = await runtime.runAndCollect({ sessionId: 's', text: 'Did you pay?' })
  expect(text).toBe('Done.')
  return JSON.stringify(provider.requests.at(-1)?.messages)
}

async function bankOf(): Promise<Bank> {
  const bank = await openBank()
  onTestFinished(() => bank.close())
  return bank
}

const ENDS = [
  ['ended', false],
  ['continued', true],
] as const

test.each(ENDS)(
  'after a killed run was %s, a payment that the model repeats is not executed',
  async (_end, resume) => {
    const bank = await bankOf()
    const sent = await payAgain(bank, resume, {})
    expect(bank.requests).toHaveLength(1)
    expect(sent).toContain('NOT known whether it took effect')
    expect(sent).toContain('Not run again')
  },
)

test.each(ENDS)(
  'after a killed run was %s, verify gives the model the receipt of its payment',
  async (_end, resume) => {
    const bank = await bankOf()
    const sent = await payAgain(bank, resume, { verify: paidAt(bank.url), onUnknown: 'fail' })
    expect(sent).toContain(`receipt of ${bank.requests[0]}`)
  },
)

test('after a killed run was ended, retry repeats its payment with the same key, and the bank pays once', async () => {
  const bank = await bankOf()
  await payAgain(bank, false, { onUnknown: 'retry' })
  expect(bank.requests).toHaveLength(2)
  expect(bank.payments).toBe(1)
})

test('after a killed run was continued, retry repeats its payment with the same key, and a later equal call has another', async () => {
  const bank = await bankOf()
  await payAgain(bank, true, { onUnknown: 'retry' })
  expect(bank.requests).toHaveLength(3)
  expect(bank.requests[1]).toBe(bank.requests[0])
  expect(bank.payments).toBe(2)
})
