/**
 * Before anything of a folder is loaded: is it trusted? A folder that would run nothing and redirect nothing needs
 * no trust. A command that runs an agent asks a person at a terminal and refuses elsewhere; a command that reads
 * leaves out what needs trust and says so.
 */

import { isSecretPath, redactText } from '../base/redact.js'
import { changedFiles, type FolderNeeds, folderNeeds, type NeededSetting } from '../config/folder-needs.js'
import { isSecretVariable } from '../config/substitute.js'
import { changeTrust, readTrust, type TrustRecord, trustFile } from '../config/trust-record.js'
import { AgentError } from '../errors.js'
import { ask, canAsk } from './ask.js'
import { called } from './next-command.js'
import { note } from './output.js'
import { fitText, plainLine } from './plain-text.js'

export interface TrustFlags {
  config?: string | undefined
  agent?: string | undefined
  store?: string | undefined
  trust?: boolean | undefined
  json?: boolean | undefined
}

export interface TrustOptions {
  cwd?: string
  /** True for commands that run an agent: without trust they do not start. */
  runs: boolean
}

/** What is left out because the folder is not trusted; nothing when it is, or needs no trust. */
export async function settleTrust(flags: TrustFlags, { cwd = process.cwd(), runs }: TrustOptions) {
  if (flags.trust || isTrustedByEnvironment(process.env)) return []
  const { needs, all, record } = await untrustedNeeds(flags, cwd)
  if (needs.length === 0) return []
  const skipped = all.flatMap(({ skips }) => skips)
  if (!runs) {
    note(plainLine(skippedLine(needs, skipped)))
    return skipped
  }
  if (flags.json || !canAsk()) throw refusal(needs, record)
  note(needsText(needs, record))
  if (!(await ask('Trust it? [y/N]: ')).startsWith('y'))
    throw untrusted('Nothing was run: the folder is not trusted.', needs)
  await remember(needs)
  return []
}

/** LANGO_TRUST of the process, for containers and scripts. It is asked before any `.env` is read. */
function isTrustedByEnvironment({ LANGO_TRUST }: NodeJS.ProcessEnv): boolean {
  return LANGO_TRUST === '1' || LANGO_TRUST === 'true'
}

export interface UntrustedNeeds {
  /** Of folders that are not trusted, or not as they are now. */
  needs: FolderNeeds[]
  /** Those of trusted folders, too. */
  all: FolderNeeds[]
  record: TrustRecord
}

/** What a command would load that nobody has trusted as it is now. */
export async function untrustedNeeds(flags: TrustFlags, cwd: string): Promise<UntrustedNeeds> {
  const all = await folderNeeds({
    cwd,
    file: flags.config,
    agent: flags.agent,
    env: process.env,
    hasStore: flags.store !== undefined,
  })
  if (all.length === 0) return { needs: [], all, record: { folders: new Map() } }
  const file = trustFile(process.env)
  const record = await readTrust(file)
  if (record.problem !== undefined) {
    note(`${plainLine(`${file} cannot be read (${record.problem})`)}, so no folder counts as trusted.`)
  }
  const needs = all.filter(each => changedFiles(each, record.folders.get(each.folder)).length > 0)
  return { needs, all, record }
}

/** Trusts these files of these folders. */
export async function remember(needs: readonly FolderNeeds[]): Promise<void> {
  const trustedAt = new Date().toISOString()
  const file = trustFile(process.env)
  const before = await changeTrust(file, folders => {
    for (const { folder, files } of needs) {
      folders.set(folder, { trustedAt, files: { ...folders.get(folder)?.files, ...files } })
    }
  })
  if (before.problem !== undefined) note(`The old list of trusted folders is kept as ${file}.unreadable.`)
}

/** All that a person has to know to decide. */
export function needsText(needs: readonly FolderNeeds[], { folders }: TrustRecord): string {
  return needs.flatMap(each => [headline(each, folders), ...factLines(each)]).join('\n')
}

function headline(needs: FolderNeeds, folders: TrustRecord['folders']): string {
  const trusted = folders.get(needs.folder)
  const folder = plainLine(needs.folder)
  if (!trusted) return `${folder} is not trusted yet.`
  const changed = changedFiles(needs, trusted).map(name =>
    Object.hasOwn(trusted.files, name) ? `${name} changed` : `${name} is new`,
  )
  return `${folder} is not as it was when it was trusted: ${plainLine(few(changed))}.`
}

function factLines({ runs, settings }: FolderNeeds): string[] {
  const servers = settings.filter(({ path }) => path[0] === 'mcpServers' && STARTS.has(String(path[2])))
  const sends = settings.filter(setting => !servers.includes(setting) && isAddress(setting))
  const others = settings.filter(setting => !servers.includes(setting) && !sends.includes(setting))
  return [
    ...block('It would run:', runs),
    ...block('It would start programs:', servers.map(shown)),
    ...block('It would send keys or messages by:', sends.map(shown)),
    ...block('It would set:', others.map(shown)),
    ...(runs.length > 0 ? ['What these files do and set is known only when they run: read them first.'] : []),
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

function skippedLine(needs: readonly FolderNeeds[], skipped: readonly string[]): string {
  const where = needs.map(({ folder }) => folder).join(', ')
  return `Left out, because ${where} is not trusted: ${few(skipped)}. '${called('trust')}' shows it and asks.`
}

function refusal(needs: readonly FolderNeeds[], { folders }: TrustRecord): AgentError {
  const where = needs.map(({ folder }) => folder).join(', ')
  const why = needs.some(({ folder }) => folders.has(folder))
    ? 'has changed since it was trusted'
    : 'is not trusted'
  const what = few(needs.flatMap(({ skips }) => skips))
  return untrusted(
    `${where} ${why}, and ${what} would run code or set where keys and messages go: look at it, then run '${called('trust')}' there, or add --trust.`,
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
