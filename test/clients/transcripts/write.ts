/**
 * Writes the transcripts of this folder again. The programs report home, so they run in a network namespace that has
 * loopback alone; without one this script refuses to start them:
 *
 *   npm ci --ignore-scripts
 *   unshare -n sh -c 'ip link set lo up; node --import tsx write.ts [program] [scene]'
 */

import { type ChildProcess, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type StrictProvider, startStrictProvider } from '../../../src/testing/start-strict-provider.js'
import type { Fault, RequestSummary, ScriptStep } from '../../../src/testing/strict/script.js'
import { type Place, PROGRAMS, type Program, type Start } from './programs.js'
import { SCENES, type Scene, type Step, type Turn } from './scenes.js'
import { scrubbed } from './scrub.js'

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const MOST_MS = 60_000
const ASKS_FOR_SUMMARY = /checkpoint|detailed summary|structured summary/i
const SUMMARY = 'Ann asked for her list. It has milk and bread.'

const outside = Object.keys(networkInterfaces()).filter(name => name !== 'lo')
if (outside.length > 0) {
  console.error(`There is a network (${outside.join(', ')}): run this in a namespace with loopback alone.`)
  process.exit(1)
}

const [, , onlyProgram, onlyScene] = process.argv
for (const program of PROGRAMS.filter(({ name }) => !onlyProgram || name === onlyProgram)) {
  for (const scene of SCENES.filter(({ name }) => !onlyScene || name === onlyScene)) {
    if (scene.only && !scene.only.includes(program.name)) continue
    await play(program, scene)
  }
}
process.exit(0)

async function play(program: Program, scene: Scene): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'transcripts-'))
  const [home, project] = [join(root, 'home'), join(root, 'project')]
  for (const folder of [home, project]) mkdirSync(folder)
  writeFileSync(join(project, 'notes.txt'), 'milk\nbread\n')
  writeFileSync(join(project, 'pixel.png'), Buffer.from(PIXEL, 'base64'))
  const model = modelOf(program, project)
  const servers: StrictProvider[] = []
  const addresses: Record<string, string> = {}
  for (const [api, profile] of Object.entries(program.apis)) {
    const faults: Fault[] = []
    const script = (request: RequestSummary, index: number) => model.answer(request, index, faults)
    const server = await startStrictProvider({ profile, script, faults })
    servers.push(server)
    addresses[api] = server.baseUrl
  }
  const api = scene.api && scene.api in program.apis ? scene.api : (Object.keys(program.apis)[0] ?? '')
  const thinks = scene.turns.some(({ steps }) => steps.some(step => step.thinks ?? step.redacted))
  const place: Place = { home, project, addresses, api, thinks }
  program.prepare(place)
  for (const [index, turn] of scene.turns.entries()) {
    rmSync(join(project, 'started'), { force: true })
    model.steps = [...turn.steps]
    model.isCompacting = turn.compacts === true
    const shown = turn.picture ? { ...turn, picture: PIXEL } : turn
    await run(program.start(shown, place, index === 0), shown, place)
  }
  const violations = servers.flatMap(server => server.violations.map(({ message }) => message))
  for (const server of servers) await server.close()
  keep(program, scene, place)
  console.log(`${program.name} ${scene.name}`, ...violations, model.steps.length > 0 ? 'STEPS LEFT' : '')
  rmSync(root, { recursive: true, force: true })
}

interface Model {
  /** What the model still has to say. */
  steps: Step[]
  isCompacting: boolean
  answer(request: RequestSummary, index: number, faults: Fault[]): ScriptStep
}

/** The steps of the turn in order; a request for a summary gets one. */
function modelOf(program: Program, project: string): Model {
  const model: Model = {
    steps: [],
    isCompacting: false,
    answer: (request, index, faults) => {
      if (model.isCompacting && ASKS_FOR_SUMMARY.test(request.lastUserText)) return { text: SUMMARY }
      const { says, thinks, redacted, calls, finish } = model.steps.shift() ?? { says: 'Nothing more.' }
      if (model.steps[0]?.refused) {
        model.steps.shift()
        faults.push({ kind: 'auth', at: index + 1 })
      }
      return {
        ...(says === undefined ? {} : { text: says }),
        ...(thinks === undefined ? {} : { thinking: thinks }),
        ...(redacted ? { redactedThinking: true } : {}),
        ...(calls ? { toolCalls: calls.map(call => program.call(call, project)) } : {}),
        ...(finish ? { finish } : {}),
      }
    },
  }
  return model
}

async function run(start: Start, turn: Turn, { home, project }: Place): Promise<void> {
  const env = { PATH: process.env.PATH ?? '', HOME: home, LANG: 'C.UTF-8', ...start.env }
  const child = spawn(start.command, [...start.args], { cwd: project, env, detached: true })
  let said = ''
  let errors = ''
  child.stdout.on('data', chunk => {
    said += chunk
    if (start.doneWhen?.test(said)) child.stdin.end()
  })
  child.stderr.on('data', chunk => {
    errors += chunk
  })
  for (const line of start.lines ?? []) child.stdin.write(`${JSON.stringify(line)}\n`)
  if (!start.lines) child.stdin.end()
  const watch = setInterval(() => {
    if (!(turn.ends ?? turn.meanwhile) || !existsSync(join(project, 'started'))) return
    clearInterval(watch)
    if (turn.meanwhile) return void child.stdin.write(`${JSON.stringify(start.speak?.(turn.meanwhile))}\n`)
    if (turn.ends === 'killed') kill(child, 'SIGKILL')
    else if (start.interrupt) child.stdin.write(`${JSON.stringify(start.interrupt)}\n`)
    else child.kill('SIGINT')
  }, 100)
  const limit = setTimeout(() => kill(child, 'SIGKILL'), MOST_MS)
  const code = await new Promise(resolve => child.on('exit', resolve))
  clearInterval(watch)
  clearTimeout(limit)
  if (code !== 0 && process.env.LANGO_TRANSCRIPT_VERBOSE)
    console.log(code, said.slice(-2000), errors.slice(-2000))
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, signal)
}

/** Keeps the transcripts of a scene, the newest last, without the folders of this machine. */
function keep({ name, sessions }: Program, scene: Scene, place: Place): void {
  const found = readdirSync(join(place.home, sessions), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith('.jsonl'))
    .map(entry => join(entry.parentPath, entry.name))
    .sort()
  const folder = join(import.meta.dirname, name)
  mkdirSync(folder, { recursive: true })
  for (const [index, file] of found.entries()) {
    const target = join(folder, `${scene.name}${index === 0 ? '' : `-${index + 1}`}.jsonl`)
    writeFileSync(target, scrubbed(readFileSync(file, 'utf8'), place))
    if (process.env.LANGO_TRANSCRIPT_RAW)
      cpSync(file, join(process.env.LANGO_TRANSCRIPT_RAW, `${name}-${scene.name}-${index}.jsonl`))
  }
}
