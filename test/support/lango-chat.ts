// `lango chat` from the sources, for tests that drive it in a terminal.
import { parseArgs } from 'node:util'
import { chat } from '../../src/cli/chat/chat.js'
import { messageOf } from '../../src/errors.js'

const text = { type: 'string' } as const
const { values } = parseArgs({
  options: { session: text, model: text, agent: text, config: text, store: text, user: text },
})
try {
  process.exitCode = await chat(values)
} catch (error) {
  process.stderr.write(`lango: ${messageOf(error)}\n`)
  process.exitCode = 1
}
