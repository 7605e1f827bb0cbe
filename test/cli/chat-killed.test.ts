import { expect, test, vi } from 'vitest'
import { folderFor, READY, say, serve, start } from './chat-stage.js'

vi.setConfig({ testTimeout: 120_000 })

test('a killed chat continues: the next one resumes the run and shows its answer, then takes the next message', async () => {
  const server = await serve({
    profile: 'openai-chat',
    script: [{ deltas: ['Half ', 'of ', 'it', '.'] }, { text: 'Once more.' }],
    faults: [{ at: 0, kind: 'hang', afterEvents: 3 }],
  })
  const cwd = await folderFor(server)
  const first = start({ cwd, args: ['chat', '--session', 'mine'] })
  await first.waitFor(READY)
  say(first, 'Tell me')
  await first.waitFor('Half')
  first.kill('SIGKILL')
  await first.ended()

  const second = start({ cwd, args: ['chat', '--session', 'mine'] })
  await second.waitFor('Half of it.')
  await second.waitUntilGone('Ctrl-C stops')
  expect(second.screen()).toContain('› Tell me')
  expect(second.screen()).not.toContain('interrupted')
  say(second, 'Again')
  await second.waitFor('Once more.')
  await second.waitUntilGone('Ctrl-C stops')
  expect(server.violations).toEqual([])
})
