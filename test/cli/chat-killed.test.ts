import { expect, test, vi } from 'vitest'
import { folderFor, READY, say, serve, start } from './chat-stage.js'

vi.setConfig({ testTimeout: 120_000 })

test('a killed chat continues: the next one shows where it was interrupted and sends the next message', async () => {
  const server = await serve({
    profile: 'openai-chat',
    script: [{ deltas: ['Half ', 'of ', 'it', '.'] }, { text: 'All of it.' }],
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
  await second.waitFor('! the last run was interrupted; your next message continues from here')
  expect(second.screen()).toContain('› Tell me')
  say(second, 'Again')
  // The lease of a killed process is free at once on its own machine.
  await second.waitFor('of it')
  await second.waitUntilGone('Ctrl-C stops')
  expect(server.violations).toEqual([])
})
