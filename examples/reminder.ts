/** A reminder: the run is stored now, and executed when it is due, by any process on the store. */
import { createRuntime } from 'lango'

const runtime = await createRuntime({
  store: 'memory:',
  agent: { model: 'demo/demo', instruction: 'Remind the user in one sentence.' },
})
const { runId } = await runtime.start({
  sessionId: 'trip',
  text: 'Remind me to check in.',
  at: new Date(Date.now() + 3000),
})
console.log((await runtime.findRun(runId))?.state)
for await (const event of runtime.follow(runId)) {
  if (event.type === 'run-finish') console.log(event.text)
}
await runtime.close()
