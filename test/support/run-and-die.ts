// run-and-die.ts <store URL> <session> <index>: runs a multi-tool turn and kills itself with SIGKILL right
// after the event of that index (0 is run-start). Prints how many events there were if it survives.
import { createRuntime } from '../../src/runtime/runtime.js'
import { multiToolProvider } from './multi-tool-play.js'
import { saveTool, searchTool } from './tools.js'

const [store = '', sessionId = '', dieAt = '0'] = process.argv.slice(2)
const runtime = await createRuntime({
  store,
  providers: { play: multiToolProvider() },
  agent: { name: 'root', model: 'play/m', tools: [searchTool, saveTool] },
})
let index = 0
for await (const _event of runtime.run({ sessionId, text: 'Look it up.' })) {
  if (index === Number(dieAt)) process.kill(process.pid, 'SIGKILL')
  index += 1
}
console.log(index)
await runtime.close()
