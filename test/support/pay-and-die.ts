// pay-and-die.ts <store URL> <session> <bank URL>: runs a turn whose tool pays, and kills itself with SIGKILL when the
// bank has taken the money and the tool has not answered yet.
import { createRuntime } from '../../src/runtime/runtime.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { payment } from './bank.js'

const [store = '', sessionId = '', bank = ''] = process.argv.slice(2)
const pay = payment(bank)
const runtime = await createRuntime({
  store,
  providers: {
    play: new ScriptedProvider([{ toolCalls: [{ id: 'c1', name: 'pay', args: { amount: 5 } }] }]),
  },
  agent: {
    name: 'root',
    model: 'play/m',
    tools: [
      {
        ...pay,
        execute: async (args, context) => {
          await pay.execute(args, context)
          process.kill(process.pid, 'SIGKILL')
          return new Promise(() => {})
        },
      },
    ],
  },
})
await runtime.runAndCollect({ sessionId, text: 'Pay five.' })
