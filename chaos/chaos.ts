// npm run chaos: see HELP.
import { parseArgs } from 'node:util'
import { messageOf } from '../src/errors.js'
import { isOn, namedIn, positive } from './arguments.js'
import { EVENTS } from './disturb.js'
import { type ChaosReport, runChaos } from './run-chaos.js'

const HELP = `npm run chaos -- [options]

Starts servers on one store, sends them messages that pay orders at a bank, kills and freezes them at moments chosen by
a seed, and checks what is left: no acknowledged message lost, none stored twice, no order paid twice, no run
interleaved with another one, without an end, or interrupted where it could have been continued. Exit code 1 when a
check fails; the evidence is then in the folder that is printed. Everything runs on this machine and listens on 127.0.0.1 only.

  --minutes N      how long each store is disturbed (default 2; with --kills, 60)
  --kills N        end after N kills of each store (kill -9; freezes, SIGTERM and restarts come in addition)
  --store S        sqlite, postgres, both (default), pgbouncer-session, pgbouncer-transaction (PostgreSQL behind an
                   installed PgBouncer), or the URL of an empty database
  --events LIST    only these: kill, freeze (SIGSTOP for longer than a lease), term, disconnect, restart (PostgreSQL)
  --processes N    servers at a time (default 3)
  --sessions N     sessions in use at a time (default 8)
  --seed S         the choices of an earlier run (default: a new seed, which is printed)
  --resume on|off  continue the runs of processes that are gone (default on), or let them end as interrupted
  --engine E       what dispatches runs: leases (default), or dbos, on PostgreSQL only
  --sabotage       let the servers repeat payments without a key: the checks must fail
  --json           print the reports as JSON

Equal seeds make equal choices; the timing of processes differs from run to run.
`

const ARGUMENTS = {
  minutes: { type: 'string' },
  kills: { type: 'string' },
  store: { type: 'string', default: 'both' },
  events: { type: 'string' },
  processes: { type: 'string', default: '3' },
  sessions: { type: 'string', default: '8' },
  seed: { type: 'string' },
  resume: { type: 'string', default: 'on' },
  engine: { type: 'string', default: 'leases' },
  sabotage: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

const ENGINES = ['leases', 'dbos'] as const

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
  const stop = new AbortController()
  const onSignal = () => (stop.signal.aborted ? process.exit(130) : stop.abort())
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  const reports: ChaosReport[] = []
  for (const store of values.stores) {
    if (stop.signal.aborted) break
    console.error(`chaos: ${store}, seed ${values.seed}`)
    const progress = (line: string) => console.error(`  ${line}`)
    const report = await runChaos({ ...values, store, signal: stop.signal, progress })
    reports.push(report)
    if (!values.json) print(report)
  }
  if (values.json) console.log(JSON.stringify(reports, null, 2))
  return reports.some(({ problems }) => problems.length > 0) || stop.signal.aborted ? 1 : 0
}

function readArguments() {
  const { values } = parseArgs({ options: ARGUMENTS })
  const kills = values.kills === undefined ? Number.POSITIVE_INFINITY : positive('kills', values.kills)
  const minutes = positive('minutes', values.minutes ?? (values.kills === undefined ? '2' : '60'))
  const [engine = 'leases'] = namedIn('engine', values.engine, ENGINES)
  const both = engine === 'dbos' ? ['postgres'] : ['sqlite', 'postgres']
  return {
    engine,
    stores: values.store === 'both' ? both : [values.store],
    seed: values.seed ?? Math.random().toString(36).slice(2, 10),
    processes: positive('processes', values.processes),
    sessions: positive('sessions', values.sessions),
    ...(values.events === undefined ? {} : { events: namedIn('events', values.events, EVENTS) }),
    kills,
    limitMs: minutes * 60_000,
    sabotage: values.sabotage,
    resume: isOn('resume', values.resume),
    json: values.json,
    help: values.help,
  }
}

function print(report: ChaosReport): void {
  const { problems, folder, finishReasons, errors, answers, ...counts } = report
  const list = (values: Record<string, number>) =>
    Object.entries(values)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ') || 'none'
  for (const [name, value] of Object.entries(counts)) console.log(`${name.padEnd(14)} ${value}`)
  console.log(`${'finished'.padEnd(14)} ${list(finishReasons)}`)
  console.log(`${'errors'.padEnd(14)} ${list(errors)}`)
  for (const [name, { count, example }] of Object.entries(answers))
    console.log(`${'answer'.padEnd(14)} ${name}: ${count}, such as ${example}`)
  if (problems.length === 0) {
    console.log('ok: nothing lost, doubled, interleaved, stuck or interrupted without need')
    return
  }
  for (const { kind, detail, runId } of problems.slice(0, 40))
    console.log(`FAIL ${kind}${runId ? ` (run ${runId})` : ''}: ${detail.slice(0, 600)}`)
  console.log(`${problems.length} problems with seed ${report.seed}; the evidence is in ${folder}`)
}
