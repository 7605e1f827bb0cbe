// Names that every plain object inherits as words of a command line.
import { expect, test } from 'vitest'
import { readLine } from '../../src/cli/chat/commands.js'
import { parseCommandLine } from '../../src/cli/command-line.js'
import { LANGO } from '../../src/cli/commands.js'
import { completion } from '../../src/cli/completion.js'
import { refusalWords } from '../../src/runtime/check/problems.js'
import { PROTOTYPE_NAMES } from '../support/prototype-names.js'
import { memoryIo } from './memory-io.js'

test.each(PROTOTYPE_NAMES)('%s is refused as a command, an option and a shell', async name => {
  for (const args of [[name], ['sessions', name], ['config', name]]) {
    expect(() => parseCommandLine(LANGO, args)).toThrow(`Unknown command "${args.join(' ')}".`)
  }
  for (const args of [
    [`--${name}`],
    [`--${name}=x`],
    ['run', 'hi', `--${name}`, 'x'],
    ['models', `--no-${name}`],
  ]) {
    expect(() => parseCommandLine(LANGO, args)).toThrow(/Unknown option --/)
  }
  await expect(completion(memoryIo(), name, LANGO)).rejects.toMatchObject({
    code: 'invalid-argument',
    message: expect.stringContaining(`"${name}"`),
  })
  const typed = readLine(`/${name}`)
  expect(['unknown-command', 'message']).toContain(typed.kind)
  expect(refusalWords(name, name)).toBeUndefined()
})

test.each(PROTOTYPE_NAMES)('%s is accepted as a word of a prompt', name => {
  expect(parseCommandLine(LANGO, ['run', name, '--session', name, '--model', name])).toMatchObject({
    words: [name],
    flags: { session: name, model: name },
  })
})
