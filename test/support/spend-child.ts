// spend-child.ts <store URL> <base URL> <name> <runs>: all runs at once, each in a session of its own, for one user.
import { createRuntime } from '../../src/runtime/runtime.js'
import { billedBy } from './billing-provider.js'

const [store = '', baseUrl = '', name = '', runs = '0'] = process.argv.slice(2)
const runtime = await createRuntime({
  store,
  providers: { bank: billedBy({ baseUrl }) },
  agent: { name: 'root', model: 'bank/bill-1' },
  runs: { resume: false },
  budget: { perUserUsdPerDay: 1 },
})
console.log('ready')
await Promise.all(
  Array.from({ length: Number(runs) }, async (_, index) => {
    const { finishReason, text } = await runtime.runAndCollect({
      sessionId: `${name}-${index}`,
      userId: 'ann',
      text: `Question ${index} of ${name}`,
    })
    console.log(`${finishReason} ${text.slice(0, 20)}`)
  }),
)
await runtime.close()
