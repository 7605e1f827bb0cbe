// schedule-child.ts <store URL> <app> <time>: a process with hourly schedules, one for each policy about missed ticks, whose
// clock begins at that time. Prints a line when it has dealt with what was missed.
import { silentLogger } from '../../src/logger.js'
import { createRuntime } from '../../src/runtime/runtime.js'
import { Schedules } from '../../src/runtime/schedules.js'
import { obedientProvider } from './obedient-provider.js'

const [store = '', app = '', time = '0'] = process.argv.slice(2)
const runtime = await createRuntime({
  ...{ app, store },
  providers: { play: obedientProvider },
  agent: { name: 'root', model: 'play/model' },
})
await runtime.ready()
const begunAt = performance.now()
const policies = ['skip', 'latest', 'all'] as const
const schedules = new Schedules({
  appName: app,
  store: runtime.store,
  logger: silentLogger,
  schedules: policies.map(missed => ({
    ...{ name: missed, cron: '0 * * * *', session: missed, text: 'say 1', missed },
  })),
  start: input => runtime.start(input),
  now: () => Math.floor(Number(time) + performance.now() - begunAt),
})
await schedules.begin()
console.log('begun')
setInterval(() => {}, 60_000)
