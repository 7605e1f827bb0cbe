// say-and-die.ts <store URL> <run id>: begins an answer, prints each event that a follower gets as JSON, and is killed
// with SIGKILL after the text, before any of it is stored: its store completes no write of a text.
import { isDelta } from '../../src/run/event-numbers.js'
import type { RunEvent } from '../../src/run/run-event.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { faultyStore } from './faulty-store.js'
import { halfAnswer } from './half-answer.js'

const [url = '', runId = ''] = process.argv.slice(2)
const never = new Promise<never>(() => {})
const store = faultyStore(await openStore(url), {
  runs: {
    saveStep: (real, step) =>
      (step.events ?? []).some(event => isDelta(event as unknown as RunEvent)) ? never : real(step),
  },
})
const runtime = await createRuntime({
  store,
  providers: { play: halfAnswer() },
  agent: { name: 'root', model: 'play/m' },
})
await runtime.start({ sessionId: 's', text: 'Go.', runId })
let text = ''
for await (const event of runtime.follow(runId)) {
  console.log(JSON.stringify(event))
  if (event.type === 'text-delta') text += event.text
  if (text === 'The ans') process.kill(process.pid, 'SIGKILL')
}
