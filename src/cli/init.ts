/** `lango init`: asks three questions and writes an agent that runs. */

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { DEFAULT_STORE } from '../config/find-config.js'
import { canReadTypeScript, nodeReadsTypeScript } from '../config/import-file.js'
import { AgentError, messageOf } from '../errors.js'
import { canAsk } from './ask.js'
import type { Flags } from './command.js'
import { type InitAnswers, type InitFormat, initFiles } from './init-files.js'
import type { Io } from './io.js'
import { called, quoted } from './next-command.js'
import { note, print } from './output.js'

/** Asks, checks and writes. Throws before anything is written. */
export async function init(io: Io, [folder = '.']: readonly string[], flags: Flags): Promise<number> {
  const target = resolve(io.cwd, folder)
  const format = chooseFormat(flags, target)
  refuseToOverwrite(target)
  const answers = await answersFor(io, flags, target)
  if (answers === undefined) {
    note(io, 'Nothing was written.')
    return 1
  }
  await checkAnswers(answers)
  const files = initFiles(answers, format)
  for (const { path, text } of files) writeNew(join(target, path), text)
  await trustOwn(io, join(target, files[0]?.path ?? ''), usesOwnTsx(target, format))
  await print(
    io,
    `${nextSteps(
      io,
      target,
      files.map(({ path }) => path),
      format,
    )}\n`,
  )
  return 0
}

/**
 * Trusts the files that init wrote, and no others of the folder. Where TypeScript is loaded by a `tsx` from that
 * folder, that code was not reviewed: then the first run asks.
 */
async function trustOwn(io: Io, config: string, runsOtherCode: boolean): Promise<void> {
  if (runsOtherCode) return
  const [{ configNeeds }, { remember }] = await Promise.all([
    import('../config/folder-needs.js'),
    import('./settle-trust.js'),
  ])
  try {
    await remember(io, await configNeeds(config))
  } catch (error) {
    note(io, `The new files could not be marked as trusted: ${messageOf(error)}`)
  }
}

function usesOwnTsx(target: string, format: InitFormat): boolean {
  if (format !== 'ts' || nodeReadsTypeScript()) return false
  return existsSync(join(target, 'node_modules/tsx'))
}

function chooseFormat(flags: Flags, target: string): InitFormat {
  const asked = (['ts', 'js', 'json'] as const).filter(format => flags[format])
  if (asked.length > 1) throw invalid(`Use only one of --${asked.join(', --')}.`)
  return asked[0] ?? (canReadTypeScript(join(target, 'index.js')) ? 'ts' : 'js')
}

const TAKEN = /^(lango\.config\.(ts|mts|js|mjs|json|ya?ml)|agent\.(ts|mts|js|mjs)|tools)$/

function refuseToOverwrite(target: string): void {
  if (!existsSync(target)) return
  const found = readNames(target).filter(name => TAKEN.test(name) && !isFreeFolder(join(target, name)))
  if (found.length === 0) return
  const them = found.length === 1 ? 'it' : 'them'
  throw invalid(
    `${found.join(', ')} already ${found.length === 1 ? 'exists' : 'exist'} in ${target}; nothing was written. Move ${them} away, or use another folder: lango init my-agent`,
  )
}

/** A `tools` folder may exist, as long as the file to write does not. */
function isFreeFolder(path: string): boolean {
  if (basename(path) !== 'tools') return false
  return !['ts', 'mjs'].some(ending => existsSync(join(path, `roll-dice.${ending}`)))
}

function readNames(target: string): string[] {
  try {
    return readdirSync(target)
  } catch (error) {
    throw invalid(`Cannot use ${target} (${messageOf(error)}). Use another folder.`)
  }
}

async function answersFor(io: Io, flags: Flags, target: string): Promise<InitAnswers | undefined> {
  const defaults: InitAnswers = {
    name: flags.name ?? nameFrom(target),
    model: flags.model ?? 'auto',
    store: flags.store ?? DEFAULT_STORE,
  }
  if (flags.yes) return defaults
  if (!canAsk(io)) throw invalid('Cannot ask questions without a terminal. Pass --yes to use the defaults.')
  const { askInit } = await import('./init-questions.js')
  return askInit(io, defaults, flags)
}

/** The folder's name as a valid agent name. */
function nameFrom(target: string): string {
  const name = basename(target)
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[^A-Za-z_]+/, '')
    .replace(/-+$/, '')
  return name === '' || name === 'user' ? 'assistant' : name
}

async function checkAnswers({ name, model, store }: InitAnswers): Promise<void> {
  const [{ parseConfig }, { createRegistry }] = await Promise.all([
    import('../config/parse-config.js'),
    import('../provider/provider-registry.js'),
  ])
  // A URL from the environment is known only when the agent runs.
  const address = store.startsWith('$') ? {} : { store }
  parseConfig({ ...address, agent: { name } }, { where: 'The answer' })
  if (model !== 'auto') createRegistry().resolve(model)
}

function writeNew(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text, { flag: 'wx' })
  } catch (error) {
    throw invalid(`Cannot write ${file} (${messageOf(error)}).`)
  }
}

function nextSteps(io: Io, target: string, paths: readonly string[], format: InitFormat): string {
  const place = relative(io.cwd, target)
  const enter = place === '' ? '' : `cd ${quoted(place)}\n  `
  const tsx = format === 'ts' && !canReadTypeScript(join(target, 'index.js'))
  const needed = tsx
    ? '\nThis version of Node does not run TypeScript. Install tsx: npm install --save-dev tsx\n'
    : ''
  return `Wrote ${paths.map(path => join(place, path)).join(', ')}.
${needed}
Next:
  ${enter}${called(io, 'run')} "What time is it?"
  ${called(io, 'chat')}`
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
