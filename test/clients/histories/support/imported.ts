/** Imports a file as a person would, and compares what is stored with the file. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { messagesToProvider } from '../../../../src/adk/messages-to-provider.js'
import { isRecord } from '../../../../src/base/is-record.js'
import { parseJson } from '../../../../src/base/json.js'
import { lint } from '../../../../src/cli/lint.js'
import { importSessions } from '../../../../src/cli/sessions-import.js'
import type { StoredMessage } from '../../../../src/session/message.js'
import { openStore } from '../../../../src/store/open-store.js'
import { captured } from '../../../cli/doctor-output.js'

export interface ImportedFile {
  messages: StoredMessage[]
  /** Fields that the import named as not stored. */
  leftOut: string[]
}

export async function written(folder: string, name: string, content: unknown): Promise<string> {
  const file = join(folder, `${name.replaceAll(/\W+/g, '-')}.json`)
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

let imports = 0

/** Imports a file with one session into a store. */
export async function importFile(file: string, url: string): Promise<ImportedFile> {
  imports += 1
  const as = `imported-${imports}`
  const flags = { store: url, as, app: 'lango', user: 'user', json: true }
  const { text } = await captured(io => importSessions(io, [file], flags))
  const [report] = (JSON.parse(text) as { imported: { leftOut?: string[] }[] }).imported
  const store = await openStore(url)
  const messages = await store.readMessages(
    { appName: 'lango', userId: 'user', sessionId: as },
    { limit: 1000 },
  )
  await store.close()
  return { messages, leftOut: report?.leftOut ?? [] }
}

/** What lint says of a file for one profile: the format, and the codes of what would be refused. */
export async function lintFile(
  file: string,
  profile?: string,
): Promise<{ format: string; breaks: string[] }> {
  const { text } = await captured(io => lint(io, file, { json: true, ...(profile ? { profile } : {}) }))
  const { format, histories } = JSON.parse(text) as {
    format: string
    histories: { profiles: { findings: { code: string; severity: string }[] }[] }[]
  }
  const findings = histories.flatMap(({ profiles }) => profiles.flatMap(each => each.findings))
  const breaks = findings.filter(({ severity }) => severity === 'breaks').map(({ code }) => code)
  return { format, breaks: [...new Set(breaks)] }
}

/** The values of a file that are neither stored nor named: `path = value`. Kinds and roles are not values. */
export function lostValues(source: unknown, { messages, leftOut }: ImportedFile): string[] {
  const stored = new Set<string>()
  for (const value of leavesOf([messages, messagesToProvider(messages)], '')) stored.add(String(value.value))
  const texts = [...stored].filter(text => text.length > 1)
  const named = leftOut.map(name => name.replace(/ \(\d+\)$/, ''))
  return leavesOf(source, '').flatMap(({ path, value }) => {
    if (isStored(String(value), stored, texts)) return []
    if (named.some(name => path === name || path.startsWith(`${name}.`))) return []
    return [`${path} = ${String(value).slice(0, 80)}`]
  })
}

function isStored(value: string, stored: ReadonlySet<string>, texts: readonly string[]): boolean {
  if (stored.has(value) || stored.has(value.replace(/^data:[^,]*,/, ''))) return true
  return stored.has(String(Date.parse(value))) || texts.some(text => text.includes(value))
}

interface Leaf {
  path: string
  value: string | number
}

const KINDS = new Set(['type', 'role', 'lc', 'state', 'object'])

function leavesOf(value: unknown, path: string): Leaf[] {
  if (Array.isArray(value)) return value.flatMap(item => leavesOf(item, path))
  if (isRecord(value)) {
    return Object.entries(value).flatMap(([name, item]) =>
      KINDS.has(name) && typeof item !== 'object'
        ? []
        : leavesOf(item, path === '' ? name : `${path}.${name}`),
    )
  }
  if (typeof value === 'number') return [{ path, value }]
  if (typeof value !== 'string' || value === '') return []
  const inside = /^[[{]/.test(value) ? parseJson(value) : undefined
  return [{ path, value }, ...(typeof inside === 'object' ? leavesOf(inside, path) : [])]
}
