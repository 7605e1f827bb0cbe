import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/store/open-store.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { type TerminalOptions, TestTerminal } from '../support/terminal.js'

function open(options: TerminalOptions): TestTerminal {
  const terminal = new TestTerminal(options)
  onTestFinished(() => terminal.kill())
  return terminal
}

test('lango run asks on the terminal for approval of a call, and Ctrl-C at the question ends it', async () => {
  const cwd = await temporaryFolder()
  await writeFile(
    join(cwd, 'lango.config.json'),
    '{ "agent": { "name": "writer", "tools": ["write_file"] } }',
  )
  const args = ['run', 'write_file notes.txt']
  const allowed = open({ cwd, args })
  await allowed.waitFor('[o]nce, [a]lways, [N]o:')
  allowed.type('o\r')
  expect(await allowed.ended()).toBe(0)
  expect(allowed.all()).toMatch(/← write_file \(\d+\.\d s\)/)
  const written = (await readdir(cwd)).filter(name => name.includes('notes'))
  expect(written).toHaveLength(1)
  const stopped = open({ cwd, args })
  await stopped.waitFor('[o]nce, [a]lways, [N]o:')
  stopped.key('ctrl-c')
  expect(await stopped.ended()).toBe(130)
})

test('lango sessions delete asks on the terminal; tables fit 80 columns, are bold, and plain with NO_COLOR', async () => {
  const cwd = await temporaryFolder()
  const store = await openStore(`sqlite:${cwd}/lango.db`)
  const key = { appName: 'lango', userId: 'user', sessionId: '2b7c9b1e-5d5a-4a7e-9f0e-1234567890ab' }
  await store.createSession(key)
  await store.appendMessage(key, { role: 'user', content: '東京から京都まで 🚄 '.repeat(9), timestamp: 1 })
  await store.close()
  const list = open({ cwd, args: ['sessions', 'list'] })
  expect(await list.ended()).toBe(0)
  const lines = list.all().split('\n')
  expect(lines).toHaveLength(2)
  expect(lines[1]).toMatch(/^2b7c9b1e-5d5a-4a7e-9f0e-1234567890ab +1 +just now +東京.*…$/)
  expect(list.output).toContain('\u001b[1mSESSION')
  const plain = open({ cwd, args: ['sessions', 'list'], env: { NO_COLOR: '1' } })
  await plain.ended()
  expect(plain.output).not.toContain('\u001b[1m')
  const unsure = open({ cwd, args: ['sessions', 'delete', key.sessionId] })
  await unsure.waitFor('[y/N]')
  unsure.key('enter')
  expect(await unsure.ended()).toBe(1)
  expect(unsure.all()).toContain('Nothing was deleted.')
  const sure = open({ cwd, args: ['sessions', 'delete', key.sessionId] })
  await sure.waitFor('[y/N]')
  sure.type('y\r')
  expect(await sure.ended()).toBe(0)
  expect(sure.all()).toContain('Deleted 1 session')
})

test('lango init asks three questions on the terminal, and writes nothing when it is left', async () => {
  const cwd = await temporaryFolder()
  const left = open({ cwd, args: ['init'] })
  await left.waitFor('Name of the agent?')
  left.key('ctrl-c')
  expect(await left.ended()).toBe(1)
  expect(await readdir(cwd)).toEqual([])
  const asked = open({ cwd, args: ['init', '--name', 'clerk', '--js'] })
  await asked.waitFor('Which model?')
  asked.key('down')
  asked.key('enter')
  await asked.waitFor('Where to store sessions?')
  asked.key('enter')
  expect(await asked.ended()).toBe(0)
  expect(await readFile(join(cwd, 'agent.mjs'), 'utf8')).toContain("model: 'gemini/gemini-3.5-flash'")
})
