/**
 * Checks that a folder is trusted before anything of it is loaded. A folder that would run nothing and redirect
 * nothing needs no trust. A command that runs an agent asks on a terminal and fails elsewhere; a command that only
 * reads skips what needs trust and reports it.
 */

import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { isSecretPath, redactText } from '../base/redact.js'
import type { Environment } from '../config/environment.js'
import { changedFiles, type FolderNeeds, folderNeeds, type NeededSetting } from '../config/folder-needs.js'
import { isSecretVariable } from '../config/substitute.js'
import { changeTrust, readTrust, type TrustRecord, trustFile } from '../config/trust-record.js'
import { AgentError } from '../errors.js'
import { ask, canAsk } from './ask.js'
import type { Flags } from './command.js'
import { type Io, pathOf } from './io.js'
import { called } from './next-command.js'
import { note, print, printJson } from './output.js'
import { fitText, plainLine } from './plain-text.js'

export interface TrustFlags {
  config?: string | undefined
  agent?: string | undefined
  store?: string | undefined
  trust?: boolean | undefined
  json?: boolean | undefined
}

export interface TrustOptions {
  /** Default: the working folder. */
  cwd?: string
  /** True for commands that run an agent: without trust they do not start. */
  runs: boolean
}

export interface SettledFolder {
  /** For `loadConfig` and `loadStoreSettings`, which read no more of the folder than its trust allows. */
  folder: { cwd: string; env: Environment; trusted: boolean }
  /** Files that are not loaded because the folder is not trusted. */
  skipped: readonly string[]
}

/** Settles whether a folder is trusted. */
export async function settleTrust(
  io: Io,
  flags: TrustFlags,
  { cwd = io.cwd, runs }: TrustOptions,
): Promise<SettledFolder> {
  const skipped = await skippedParts(io, flags, { cwd, runs })
  return { folder: { cwd, env: io.env, trusted: skipped.length === 0 }, skipped }
}

/** Empty when the folder is trusted or needs no trust. */
async function skippedParts(
  io: Io,
  flags: TrustFlags,
  { cwd, runs }: Required<TrustOptions>,
): Promise<string[]> {
  if (flags.trust || isTrustedByEnvironment(io.env)) return []
  const { needs, all, record } = await untrustedNeeds(io, flags, cwd)
  if (needs.length === 0) return []
  const skipped = all.flatMap(({ skips }) => skips)
  if (!runs) {
    note(io, plainLine(skippedLine(io, needs, skipped)))
    return skipped
  }
  if (flags.json || !canAsk(io)) throw refusal(io, needs, record)
  note(io, needsText(needs, record))
  if (!(await ask(io, 'Trust it? [y/N]: ')).startsWith('y'))
    throw untrusted('The folder is not trusted; nothing was run.', needs)
  await remember(io, needs)
  return []
}

/** LANGO_TRUST of the process, for containers and scripts. It is read before any `.env`. */
function isTrustedByEnvironment({ LANGO_TRUST }: NodeJS.ProcessEnv): boolean {
  return LANGO_TRUST === '1' || LANGO_TRUST === 'true'
}

export interface UntrustedNeeds {
  /** Of folders that are not trusted, or have changed since. */
  needs: FolderNeeds[]
  /** Including those of trusted folders. */
  all: FolderNeeds[]
  record: TrustRecord
}

/** What a command would load that is not trusted in its current state. */
export async function untrustedNeeds(io: Io, flags: TrustFlags, cwd: string): Promise<UntrustedNeeds> {
  const all = await folderNeeds({
    cwd,
    file: flags.config,
    agent: flags.agent,
    env: io.env,
    hasStore: flags.store !== undefined,
  })
  if (all.length === 0) return { needs: [], all, record: { folders: new Map() } }
  const file = trustFile(io.env)
  const record = await readTrust(file)
  if (record.problem !== undefined) {
    note(io, `${plainLine(`${file} cannot be read (${record.problem})`)}; no folder is trusted.`)
  }
  const needs = all.filter(each => changedFiles(each, record.folders.get(each.folder)).length > 0)
  return { needs, all, record }
}

/** Stores that these files of these folders are trusted. */
export async function remember(io: Io, needs: readonly FolderNeeds[]): Promise<void> {
  const trustedAt = new Date().toISOString()
  const file = trustFile(io.env)
  const before = await changeTrust(file, folders => {
    for (const { folder, files } of needs) {
      folders.set(folder, { trustedAt, files: { ...folders.get(folder)?.files, ...files } })
    }
  })
  if (before.problem !== undefined)
    note(io, `The unreadable list of trusted folders was moved to ${file}.unreadable.`)
}

/** The facts that a person needs to decide. */
export function needsText(needs: readonly FolderNeeds[], { folders }: TrustRecord): string {
  return needs.flatMap(each => [headline(each, folders), ...factLines(each)]).join('\n')
}

function headline(needs: FolderNeeds, folders: TrustRecord['folders']): string {
  const trusted = folders.get(needs.folder)
  const folder = plainLine(needs.folder)
  if (!trusted) return `${folder} is not trusted.`
  const changed = changedFiles(needs, trusted).map(name =>
    Object.hasOwn(trusted.files, name) ? `${name} changed` : `${name} is new`,
  )
  return `${folder} has changed since it was trusted: ${plainLine(few(changed))}.`
}

function factLines({ runs, settings }: FolderNeeds): string[] {
  const servers = settings.filter(({ path }) => path[0] === 'mcpServers' && STARTS.has(String(path[2])))
  const sends = settings.filter(setting => !servers.includes(setting) && isAddress(setting))
  const others = settings.filter(setting => !servers.includes(setting) && !sends.includes(setting))
  return [
    ...block('It would run:', runs),
    ...block('It would start programs:', servers.map(shown)),
    ...block('It would send keys or messages to:', sends.map(shown)),
    ...block('It would set:', others.map(shown)),
    ...(runs.length > 0 ? ['What these files do is known only when they run. Read them first.'] : []),
  ]
}

const STARTS = new Set(['command', 'args', 'cwd', 'env'])

const MOST_SHOWN = 30

function block(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return []
  const more = lines.length > MOST_SHOWN ? [`  … and ${lines.length - MOST_SHOWN} more`] : []
  return [title, ...lines.slice(0, MOST_SHOWN).map(line => `  ${fitText(plainLine(line), 200)}`), ...more]
}

function isAddress({ path, value }: NeededSetting): boolean {
  const text = typeof value === 'string' ? value : ''
  return (
    /^[a-z][a-z0-9+.-]*:\/\//i.test(text) || ADDRESS_NAME.test(path.join('.')) || path.includes('headers')
  )
}

const ADDRESS_NAME = /(url|proxy|endpoint|host|hosts|origins|store|project|location|preset)$/i

function shown({ from, path, value }: NeededSetting): string {
  const name = path.join('.')
  const isSecret = isSecretPath(path) || isSecretVariable(path.at(-1) ?? '')
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return `${from}: ${name}${name === '' ? '' : ' = '}${isSecret ? '(not shown)' : redactText(String(text))}`
}

function skippedLine(io: Io, needs: readonly FolderNeeds[], skipped: readonly string[]): string {
  const where = needs.map(({ folder }) => folder).join(', ')
  return `Not loaded, because ${where} is not trusted: ${few(skipped)}. Run '${called(io, 'trust')}' to review and trust it.`
}

function refusal(io: Io, needs: readonly FolderNeeds[], { folders }: TrustRecord): AgentError {
  const where = needs.map(({ folder }) => folder).join(', ')
  const why = needs.some(({ folder }) => folders.has(folder))
    ? 'has changed since it was trusted'
    : 'is not trusted'
  const what = few(needs.flatMap(({ skips }) => skips))
  return untrusted(
    `${where} ${why}, and ${what} would run code or redirect keys and messages. Review it and run '${called(io, 'trust')}' there, or add --trust.`,
    needs,
  )
}

function untrusted(message: string, needs: readonly FolderNeeds[]): AgentError {
  return new AgentError('invalid-config', message, {
    details: { untrusted: needs.map(({ folder, files }) => ({ folder, files: Object.keys(files) })) },
  })
}

function few(names: readonly string[]): string {
  const unique = [...new Set(names)]
  return unique.length > 8
    ? `${unique.slice(0, 8).join(', ')} and ${unique.length - 8} more`
    : unique.join(', ')
}

/** `lango trust`: shows what a folder would do, asks, and stores the answer; lists and removes trusted folders. */
export async function trust(io: Io, [folder = '.']: readonly string[], flags: Flags): Promise<number> {
  if (flags.list && flags.forget) throw invalid('--list and --forget cannot be combined.')
  if (flags.list) return list(io, flags)
  const path = pathOf(io, folder)
  if (flags.forget) return forget(io, realOf(path))
  if (!existsSync(path)) throw invalid(`Folder ${folder} does not exist. Check the path.`)
  const named = {
    config: flags.config === undefined ? undefined : pathOf(io, flags.config),
    agent: flags.agent === undefined ? undefined : pathOf(io, flags.agent),
  }
  const { needs, record } = await untrustedNeeds(io, named, realOf(path))
  if (needs.length === 0) {
    await print(io, 'Nothing to trust: all settings are harmless or already trusted.\n')
    return 0
  }
  await print(io, `${needsText(needs, record)}\n`)
  if (!flags.yes) {
    if (!canAsk(io))
      throw invalid(
        'Not trusted: there is no terminal for the confirmation prompt. Review the list and pass --yes.',
      )
    if (!(await ask(io, 'Trust it? [y/N]: ')).startsWith('y')) {
      note(io, 'Not trusted.')
      return 1
    }
  }
  await remember(io, needs)
  for (const each of needs)
    await print(io, `${plainLine(each.folder)} is trusted until one of these files changes.\n`)
  return 0
}

async function list(io: Io, { json }: Flags): Promise<number> {
  const file = trustFile(io.env)
  const { folders, problem } = await readTrust(file)
  if (problem !== undefined) throw invalid(`${file} cannot be read (${problem}); no folder is trusted.`)
  const trusted = [...folders].map(([folder, entry]) => ({ folder, ...entry }))
  if (json) await printJson(io, { file, folders: trusted })
  else if (trusted.length === 0) note(io, 'No folder is trusted.')
  else {
    const lines = trusted.map(({ folder, trustedAt }) => `${trustedAt.slice(0, 10)}  ${plainLine(folder)}\n`)
    await print(io, lines.join(''))
  }
  return 0
}

async function forget(io: Io, folder: string): Promise<number> {
  const { folders, problem } = await changeTrust(trustFile(io.env), all => {
    all.delete(folder)
  })
  if (problem !== undefined)
    note(io, 'The list of trusted folders could not be read; it was replaced by an empty one.')
  else if (!folders.has(folder))
    throw invalid(`${folder} is not trusted. Run 'lango trust --list' to list trusted folders.`)
  await print(io, `${plainLine(folder)} is no longer trusted.\n`)
  return 0
}

/** Also for a folder that no longer exists, which can still be removed from the list. */
function realOf(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return resolve(folder)
  }
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
