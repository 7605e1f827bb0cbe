// A tool was stopped after it had begun. The terminal says so, and asks when the model repeats the call.
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { READY, say, serve, start } from './chat-stage.js'
import { lango } from './lango.js'

const PAID = { command: 'echo paid >> bank.txt' }

/** A folder whose session `s` has a call with an unknown outcome, and whose model repeats that call. */
async function folderWithUnknown(): Promise<string> {
  const cwd = await temporaryFolder()
  const again = { toolCalls: [{ name: 'run_command', args: PAID }] }
  const model = await serve({ profile: 'openai-chat', script: [again, { text: 'All is paid.' }] })
  const config = {
    providers: { fake: { type: 'openai-compatible', baseUrl: model.baseUrl, apiKey: 'test' } },
    agent: { model: 'fake/gpt-4.1', tools: ['run_command'] },
    tools: {
      sandbox: 'off',
      needsApproval: { run_command: false },
      effects: { run_command: { effect: 'once', onUnknown: 'ask' } },
    },
  }
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify(config))
  const stop = new AbortController()
  const tool = defineTool({
    name: 'run_command',
    description: 'Is stopped after it has begun.',
    parameters: { type: 'object' },
    execute: () => {
      stop.abort()
      return new Promise(() => {})
    },
  })
  const runtime = await createRuntime({
    store: `sqlite:${join(cwd, 'lango.db')}`,
    providers: { play: new ScriptedProvider([again]) },
    agent: { name: 'root', model: 'play/m', tools: [tool] },
  })
  for await (const _event of runtime.run({ sessionId: 's', text: 'Pay.', signal: stop.signal }));
  await runtime.close()
  return cwd
}

test('the chat shows an unknown outcome, asks about the repeated call, and Enter alone runs nothing', async () => {
  const cwd = await folderWithUnknown()
  const chat = start({ cwd, args: ['chat', '--session', 's'], columns: 72, rows: 30 })
  await chat.waitFor(READY)
  await chat.waitFor('· outcome unknown')
  say(chat, 'Did you pay?')
  await chat.waitFor('It is not known whether run_command took effect. Did it?')
  expect(chat.screen()).toMatch(/h {2}it happened\n.*r {2}it did not, run it\n.*→ l {2}leave it/)
  chat.key('enter')
  await chat.waitFor('answered: leave it')
  await chat.waitFor('All is paid.')
  expect(await readdir(cwd)).not.toContain('bank.txt')
})

test('lango run asks on a terminal about an unknown outcome, and repeats the call when a person says that it did not happen', async () => {
  const cwd = await folderWithUnknown()
  const asked = start({ cwd, args: ['run', '--session', 's', '--yes', 'Did you pay?'] })
  await asked.waitFor('[L]eave it:')
  asked.type('r\r')
  expect(await asked.ended()).toBe(0)
  expect(asked.all()).toContain('All is paid.')
  expect(await readFile(join(cwd, 'bank.txt'), 'utf8')).toBe('paid\n')
})

test('without a terminal an unknown outcome stays unknown, also with --yes', async () => {
  const cwd = await folderWithUnknown()
  const { code, stdout, stderr } = await lango(['run', '--session', 's', '--yes', 'Did you pay?'], { cwd })
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'All is paid.\n' })
  expect(stderr).toContain('It is not known whether run_command took effect')
  expect(await readdir(cwd)).not.toContain('bank.txt')
})
