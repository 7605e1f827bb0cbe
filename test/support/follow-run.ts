// follow-run.ts <store URL> <run id>: follows a run of another process, and prints the type of each event.
import { createRuntime } from '../../src/runtime/runtime.js'

const [store = '', runId = ''] = process.argv.slice(2)
const runtime = await createRuntime({ store, agent: { model: 'demo/demo' } })
for await (const event of runtime.follow(runId)) console.log(event.type)
await runtime.close()
