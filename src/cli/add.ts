/** `lango add`: installs what does not come with Lango, with the package manager of the folder. */

import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { own } from '../base/own.js'
import { suggest } from '../base/suggest.js'
import { LOCK_FILES } from '../config/executed-files.js'
import { AgentError } from '../errors.js'
import { OPTIONAL_NAMES, OPTIONAL_PACKAGES, type OptionalName, packageOf } from '../packages.js'
import { PROVIDER_PACKAGES, vendorNames, vendorRow } from '../provider/vendors.js'
import { ask, canAsk } from './ask.js'
import type { Flags } from './command.js'
import {
  type FoundPackage,
  findPackages,
  findVersion,
  installedVersions,
  isInRange,
  missingName,
} from './installed-packages.js'
import type { Io } from './io.js'
import { called, quoted } from './next-command.js'
import { lineWidth, note, print, printJson, tableLines } from './output.js'
import { peerRange, version } from './version.js'

/** A command of a package manager, and where it is run. */
export interface Installation {
  manager: string
  folder: string
  args: string[]
  /** Packages that are there already and stay as they are. */
  kept: { name: string; version: string }[]
  /** Nothing is missing. */
  isComplete: boolean
}

/** Installs packages by name; without a name, lists them. */
export async function add(io: Io, words: readonly string[], flags: Flags): Promise<number> {
  if (words.length === 0) return list(io, flags)
  const names = [...new Set(words.map(nameOf))]
  const plan = planInstallation(names, io)
  const { folder, kept, isComplete } = plan
  const command = [plan.manager, ...plan.args].join(' ')
  if (isComplete) {
    if (flags.json) await printJson(io, { folder, installed: names, changed: false })
    else await print(io, `${kept.map(describe).join('\n')}\nNothing to do.\n`)
    return 0
  }
  if (flags.print) {
    if (flags.json) await printJson(io, { command, folder })
    else await print(io, `${command}\n`)
    return 0
  }
  for (const one of kept) note(io, describe(one))
  note(io, `${command}   (in ${folder})`)
  await install(io, plan, flags.json === true)
  if (flags.json) await printJson(io, { command, folder, installed: names, changed: true })
  else await print(io, `Added ${names.join(', ')}.\n`)
  return 0
}

/**
 * Asks whether to install what an error says is missing, and runs the command again in a new process: in this one the
 * package counts as missing. Returns the exit code.
 */
export async function offer(io: Io, error: AgentError, args: readonly string[]): Promise<number> {
  const name = missingName(error)
  // Some protocols are spoken on standard input, where nobody can be asked.
  if (name === undefined || !canAsk(io) || !io.stdout.isTTY) return 1
  const said = await ask(io, 'Install it now? [y/N]: ')
  if (!said.startsWith('y')) return 1
  await add(io, [name], {})
  if (installedVersions(name) === undefined) {
    note(io, `Now run: ${called(io, args.map(quoted).join(' '))}`)
    return 0
  }
  const words = [...process.execArgv, ...process.argv.slice(1, 2), ...args]
  const child = spawn(process.execPath, words, { cwd: io.cwd, env: io.env, stdio: 'inherit' })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', code => resolve(code ?? 1))
  })
}

/** A name of the table, a package, or a vendor whose models need one. */
function nameOf(word: string): OptionalName {
  const wanted = word.toLowerCase()
  const byName = OPTIONAL_NAMES.find(name => name === wanted)
  const byPackage = OPTIONAL_NAMES.find(name =>
    OPTIONAL_PACKAGES[name].install.some(spec => packageOf(spec) === wanted || spec === wanted),
  )
  const found = byName ?? byPackage ?? own(PROVIDER_PACKAGES, vendorRow(wanted)?.type ?? '')
  if (found) return found
  const vendors = vendorNames(({ type }) => own(PROVIDER_PACKAGES, type) !== undefined)
  const near = suggest(wanted, [...OPTIONAL_NAMES, ...vendors])
  const begins = OPTIONAL_NAMES.find(name => name.startsWith(`${wanted}-`))
  const hint =
    (near ?? begins) === undefined
      ? `Known: ${OPTIONAL_NAMES.join(', ')}; or a provider, such as groq.`
      : `Did you mean "${near ?? begins}"?`
  throw new AgentError('invalid-argument', `There is nothing to add under the name "${word}". ${hint}`)
}

const MANAGERS = Object.keys(LOCK_FILES) as (keyof typeof LOCK_FILES)[]

const LANGO_FOLDER = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '')

/**
 * Where packages must be installed for Lango to find them: beside the Lango of the project; beside a global one; and where
 * Lango comes from a cache (`npx`), in the project together with it. A package that is there already is left alone; in a
 * version that Lango does not work with it is refused, because the project may need that version.
 */
export function planInstallation(
  names: readonly OptionalName[],
  { cwd, env, lango = LANGO_FOLDER }: PlanOptions,
): Installation {
  const folder = upwards(cwd, one => existsSync(join(one, 'package.json'))) ?? cwd
  const hasLango = findVersion('lango', folder) !== undefined
  const forAll = !hasLango && isGlobal(lango)
  const found = names.flatMap(name => findPackages(name, forAll ? lango : folder))
  const missing = found.flatMap(({ spec, installed }) => (installed ? [] : [spec]))
  const kept = found.flatMap(({ installed }) => installed ?? [])
  const manager = forAll ? 'npm' : managerOf(folder, env)
  refuseOthers(found, manager)
  const needsLango = !hasLango && !forAll && lango.split(sep).includes('node_modules')
  const packages = [...(needsLango ? [`lango@${version()}`] : []), ...missing]
  const verb = forAll ? ['install', '--global'] : [manager === 'npm' ? 'install' : 'add']
  return { manager, folder, args: [...verb, ...packages], kept, isComplete: packages.length === 0 }
}

/** Refuses to go on where a package is installed in a version that Lango does not work with. */
function refuseOthers(found: readonly FoundPackage[], manager: string): void {
  for (const { spec, installed } of found) {
    const range = installed && peerRange(installed.name)
    if (range === undefined || isInRange(installed?.version ?? '', range)) continue
    const replace = `${manager} ${manager === 'npm' ? 'install' : 'add'} ${spec}`
    throw new AgentError(
      'invalid-config',
      `${installed?.name} ${installed?.version} is installed, and Lango works with ${range}. Nothing was changed; to replace it, run: ${replace}`,
      { details: { ...installed, range, command: replace } },
    )
  }
}

export interface PlanOptions {
  cwd: string
  /** The folder of the running Lango. */
  lango?: string
  env: Readonly<Record<string, string | undefined>>
}

/** A global folder of packages belongs to no project. */
function isGlobal(lango: string): boolean {
  const modules = dirname(lango)
  return modules.endsWith(`${sep}node_modules`) && !existsSync(join(modules, '..', 'package.json'))
}

/** By the nearest lock file, then by what package.json says, then by what started this process. */
function managerOf(folder: string, env: Readonly<Record<string, string | undefined>>): string {
  const lockIn = (one: string) =>
    MANAGERS.find(manager => LOCK_FILES[manager].some(lock => existsSync(join(one, lock))))
  const locked = upwards(folder, one => lockIn(one) !== undefined)
  const named = namedManager(folder) ?? /^(\w+)\//.exec(env.npm_config_user_agent ?? '')?.[1]
  return (
    (locked === undefined ? undefined : lockIn(locked)) ??
    MANAGERS.find(manager => manager === named) ??
    'npm'
  )
}

function namedManager(folder: string): string | undefined {
  try {
    const { packageManager } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      packageManager?: unknown
    }
    return typeof packageManager === 'string' ? packageManager.split('@')[0] : undefined
  } catch {
    return undefined
  }
}

/** The nearest folder from here up that meets a condition. */
function upwards(from: string, condition: (folder: string) => boolean): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    if (condition(folder)) return folder
    if (folder === dirname(folder)) return undefined
  }
}

/** Runs the package manager. What it prints is shown; with `--json` on standard error. */
async function install({ env }: Io, { manager, folder, args }: Installation, asData: boolean): Promise<void> {
  const command = [manager, ...args].join(' ')
  const code = await new Promise<number | null>((resolve, reject) => {
    // On Windows these commands are scripts, which only a shell starts. The words are those of the tables above.
    const child = spawn(manager, args, {
      cwd: folder,
      env,
      stdio: ['inherit', asData ? 2 : 'inherit', 'inherit'],
      shell: process.platform === 'win32',
    })
    child.once('error', reject)
    child.once('close', resolve)
  }).catch(cause => {
    const message = `${manager} cannot be started, and this folder uses it. Run yourself: ${command}`
    throw new AgentError('invalid-config', message, { cause, details: { command, folder } })
  })
  if (code === 0) return
  const message = `${command} failed in ${folder}${code === null ? '' : ` with exit code ${code}`}; its output says why.`
  throw new AgentError('invalid-config', message, { details: { command, folder, exitCode: code } })
}

function describe({ name, version: installed }: { name: string; version: string }): string {
  return `${name} ${installed} is installed`
}

async function list(io: Io, flags: Flags): Promise<number> {
  const rows = OPTIONAL_NAMES.map(name => {
    const { what, install: specs } = OPTIONAL_PACKAGES[name]
    return { name, what, packages: specs.map(packageOf), versions: installedVersions(name) ?? null }
  })
  if (flags.json) await printJson(io, rows)
  else {
    const columns = [
      { title: 'name' },
      { title: 'installed' },
      { title: 'what needs it' },
      { title: 'packages', flexible: true },
    ]
    const cells = rows.map(({ name, what, packages, versions }) => [
      name,
      versions?.[0] ?? '–',
      what,
      packages.join(' '),
    ])
    await print(io, `${tableLines(columns, cells, lineWidth(io)).join('\n')}\n`)
  }
  return 0
}
