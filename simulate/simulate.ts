// npm run simulate: see HELP.
import { parseArgs } from 'node:util'
import { isOn, namedIn, positive } from '../chaos/arguments.js'
import { messageOf } from '../src/errors.js'
import { MUTATIONS } from './mutations.js'
import { ACTIONS, MOST_FAULTS } from './plan.js'
import { type SimulationReport, simulate } from './run-simulation.js'

const HELP = `npm run simulate -- [options]

Runs the real admission, queue, leases and ledger of several simulated processes over one SQLite database in memory,
in one process and with a virtual clock: nothing waits. A seed decides what users send, how long each call takes, and
where a process crashes, pauses for longer than its lease, or gets an error. The same seed gives the same simulation.
Exit code 1 when a simulation ends with a lost message, a payment made twice, a run without an end or an illegal
history.

  --count N        how many simulations (default 1000)
  --seed S         the seed of the first one, a whole number; the others count up from it (default 1)
  --resume on|off  whether interrupted runs are continued (default on)
  --faults N       the most faults of one simulation (default 4)
  --actions A,B    which faults: crash, pause, fail, outage, close (default: all)
  --confirmations on|off  whether some tools are ADK's own, with confirmations and results that come later (default on)
  --processes N    how many processes (default: 2 or 3)
  --pause-ms N     how long a pause takes (default: 11 to 40 s)
  --mutation M     make a mistake on purpose: ${MUTATIONS.join(', ')}
  --trace          print everything that happened, of every simulation
  --json           print the result as JSON
`

const ARGUMENTS = {
  count: { type: 'string', default: '1000' },
  seed: { type: 'string', default: '1' },
  resume: { type: 'string', default: 'on' },
  faults: { type: 'string', default: String(MOST_FAULTS) },
  actions: { type: 'string', default: ACTIONS.join(',') },
  confirmations: { type: 'string', default: 'on' },
  processes: { type: 'string' },
  'pause-ms': { type: 'string' },
  mutation: { type: 'string' },
  trace: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

/** How many lines of the trace are printed when a simulation fails. */
const LAST_LINES = 60
const MOST_FAILURES = 20

process.exitCode = await main()

async function main(): Promise<number> {
  let values: ReturnType<typeof readArguments>
  try {
    values = readArguments()
  } catch (error) {
    console.error(`${messageOf(error)}\n\n${HELP}`)
    return 1
  }
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const totals = {
    simulations: 0,
    runs: 0,
    faults: 0,
    crashes: 0,
    pauses: 0,
    effects: 0,
    interrupted: 0,
    resumed: 0,
    virtualSeconds: 0,
  }
  const failures: SimulationReport[] = []
  const began = process.hrtime.bigint()
  await simulate(seedsFrom(values.seed, values.count), values, report => {
    totals.simulations += 1
    totals.virtualSeconds += Math.round(report.virtualMs / 1000)
    for (const name of ['runs', 'faults', 'crashes', 'pauses', 'effects', 'interrupted', 'resumed'] as const)
      totals[name] += report[name]
    if (values.trace) console.error(report.trace.join('\n'))
    if (report.problems.length === 0) return true
    failures.push(report)
    if (!values.json) printFailure(report, values)
    return failures.length < MOST_FAILURES
  })
  const seconds = Number(process.hrtime.bigint() - began) / 1e9
  const perSecond = Math.round(totals.simulations / seconds)
  if (values.json) console.log(JSON.stringify({ ...totals, seconds, perSecond, failures }, null, 2))
  else console.log(`${JSON.stringify(totals)}\n${perSecond} simulations/s, ${failures.length} failed`)
  return failures.length > 0 ? 1 : 0
}

function* seedsFrom(first: number, count: number): Generator<string> {
  for (let seed = first; seed < first + count; seed++) yield String(seed)
}

function printFailure({ seed, plan, problems, trace }: SimulationReport, chosen: Chosen): void {
  const { resume, mutation, mostFaults, actions, confirmations, processes, pauseMs } = chosen
  const options = [
    ...(resume ? [] : ['--resume off']),
    ...(mostFaults === MOST_FAULTS ? [] : [`--faults ${mostFaults}`]),
    ...(actions.length === ACTIONS.length ? [] : [`--actions ${actions.join(',')}`]),
    ...(confirmations ? [] : ['--confirmations off']),
    ...(processes === undefined ? [] : [`--processes ${processes}`]),
    ...(pauseMs === undefined ? [] : [`--pause-ms ${pauseMs}`]),
    ...(mutation === undefined ? [] : [`--mutation ${mutation}`]),
  ]
  const command = ['npm run simulate -- --count 1 --seed', seed, ...options, '--trace'].join(' ')
  const messages = plan.messages.map(
    ({ text, sessionId, atMs, isTwice }) => `  ${atMs} ms, ${sessionId}${isTwice ? ', twice' : ''}: ${text}`,
  )
  const faults = plan.faults.map(({ action, point, nth, ms }) => `  ${action} at ${point} (${nth}), ${ms} ms`)
  const lines = [
    `Seed ${seed} failed: ${problems.length} problems, ${plan.processes} processes`,
    ...problems.map(problem => `  ${JSON.stringify(problem)}`),
    'Messages:',
    ...messages,
    'Faults:',
    ...faults,
    `The last events:`,
    ...trace.slice(-LAST_LINES).map(line => `  ${line}`),
    `Again: ${command}`,
  ]
  console.error(lines.join('\n'))
}

type Chosen = ReturnType<typeof readArguments>

function readArguments() {
  const { values } = parseArgs({ options: ARGUMENTS })
  const given = (name: 'processes' | 'pause-ms') => {
    const value = values[name]
    return value === undefined ? undefined : positive(name, value, true)
  }
  return {
    ...values,
    processes: given('processes'),
    pauseMs: given('pause-ms'),
    count: positive('count', values.count, true),
    seed: positive('seed', values.seed, true),
    resume: isOn('resume', values.resume),
    confirmations: isOn('confirmations', values.confirmations),
    mostFaults: positive('faults', values.faults, true),
    actions: namedIn('actions', values.actions, ACTIONS),
    mutation: values.mutation === undefined ? undefined : namedIn('mutation', values.mutation, MUTATIONS)[0],
  }
}
