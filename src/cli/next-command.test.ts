import { expect, test } from 'vitest'
import { called } from './next-command.js'

test.each([
  [{}, 'chat', 'lango chat'],
  [{ npm_command: 'exec', npm_lifecycle_script: "'lango' run" }, 'chat', 'npx lango chat'],
  [{ npm_command: 'exec', npm_lifecycle_script: 'vitest' }, 'chat', 'lango chat'],
  [{ npm_command: 'run', npm_lifecycle_event: 'chat' }, 'chat', 'npm run chat --'],
  [{ npm_command: 'run', npm_lifecycle_event: 'chat' }, 'run', 'npx lango run'],
])('with the environment %j, the suggestion of %s is %j', (env, command, line) => {
  expect(called({ env }, command)).toBe(line)
})
