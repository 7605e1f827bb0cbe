/** `lango init`: three questions, three files, and an agent that runs. */

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { DEFAULT_STORE } from '../config/find-config.js'
import { canReadTypeScript, nodeReadsTypeScript } from '../config/import-file.js'
import { AgentError, messageOf } from '../errors.js'
import { canAsk } from './ask.js'
import type { Flags } from './command.js'
import { type InitAnswers, type InitFormat, initFiles } from './init-files.js'
import { called, quoted } from './next-command.js'
import { note, print } from './output.js'

/** Asks, checks, writes; or says why not, and writes nothing. */
export async function init([folder = '.']: readonly string[], flags: Flags): Promise<number> {
  const target = resolve(folder)
  const format = chooseFormat(flags, target)
  refuseToOverwrite(target)
  const answers = await answersFor(flags, target)
  if (answers === undefined) {
    note('Nothing was written.')
    return 1
  }
  await checkAnswers(answers)
  const files = initFiles(answers, format)
  for (const { path, text } of files) writeNew(join(target, path), text)
  await trustOwn(join(target, files[0]?.path ?? ''), usesOwnTsx(target, format))
  await print(
    `${farewell(
      target,
      files.map(({ path }) => path),
      format,
    )}\n`,
  )
  return 0
}

/**
 * What init wrote is trusted as it was written. Other files of the folder are not, and where TypeScript is read by a
 * `tsx` of the folder's own, that is code that nobody has looked at: then the first run asks.
 */
async function trustOwn(config: string, runsOtherCode: boolean): Promise<void> {
  if (runsOtherCode) return
  const [{ configNeeds }, { remember }] = await Promise.all([
    import('../config/folder-needs.js'),
    import('./settle-trust.js'),
  ])
  try {
    await remember(await configNeeds(config))
  } catch (error) {
    note(`The new files are not remembered as trusted: ${messageOf(error)}`)
  }
}

function usesOwnTsx(target: string, format: InitFormat): boolean {
  if (format !== 'ts' || nodeReadsTypeScript()) return false
  return existsSync(join(target, 'node_modules/tsx'))
}

function chooseFormat(flags: Flags, target: string): InitFormat {
  const asked = (['ts', 'js', 'json'] as const).filter(format => flags[format])
  if (asked.length > 1) throw invalid(`Choose one of --${asked.join(', --')}.`)
  return asked[0] ?? (canReadTypeScript(join(target, 'index.js')) ? 'ts' : 'js')
}

const TAKEN = /^(lango\.config\.(ts|mts|js|mjs|json|ya?ml)|agent\.(ts|mts|js|mjs)|tools)$/

function refuseToOverwrite(target: string): void {
  if (!existsSync(target)) return
  const found = readNames(target).filter(name => TAKEN.test(name) && !isFreeFolder(join(target, name)))
  if (found.length === 0) return
  const them = found.length === 1 ? 'it' : 'them'
  throw invalid(
    `${found.join(', ')} ${found.length === 1 ? 'exists' : 'exist'} already in ${target}, and nothing is overwritten. Move ${them} away, or name another folder: lango init my-agent`,
  )
}

/** A folder of tools may be there, as long as none of its files is in the way. */
function isFreeFolder(path: string): boolean {
  if (basename(path) !== 'tools') return false
  return !['ts', 'mjs'].some(ending => existsSync(join(path, `roll-dice.${ending}`)))
}

function readNames(target: string): string[] {
  try {
    return readdirSync(target)
  } catch (error) {
    throw invalid(`${target} cannot be used (${messageOf(error)}): name another folder.`)
  }
}

async function answersFor(flags: Flags, target: string): Promise<InitAnswers | undefined> {
  const defaults: InitAnswers = {
    name: flags.name ?? nameFrom(target),
    model: flags.model ?? 'auto',
    store: flags.store ?? DEFAULT_STORE,
  }
  if (flags.yes) return defaults
  if (!canAsk())
    throw invalid('There are three questions, and nobody can be asked: say --yes to take the defaults.')
  const { askInit } = await import('./init-questions.js')
  return askInit(defaults, flags)
}

/** The folder's name, as far as an agent may be called so. */
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
  // An address from the environment is only known when the agent runs.
  const address = store.startsWith('$') ? {} : { store }
  parseConfig({ ...address, agent: { name } }, { where: 'What was answered' })
  if (model !== 'auto') createRegistry().resolve(model)
}

function writeNew(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text, { flag: 'wx' })
  } catch (error) {
    throw invalid(`${file} cannot be written (${messageOf(error)}).`)
  }
}

function farewell(target: string, paths: readonly string[], format: InitFormat): string {
  const place = relative(process.cwd(), target)
  const enter = place === '' ? '' : `cd ${quoted(place)}\n  `
  const tsx = format === 'ts' && !canReadTypeScript(join(target, 'index.js'))
  const needed = tsx ? '\nThis version of Node does not read TypeScript: npm install --save-dev tsx\n' : ''
  return `Wrote ${paths.map(path => join(place, path)).join(', ')}.
${needed}
Now:
  ${enter}${called('run')} "What time is it?"
  ${called('chat')}`
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
