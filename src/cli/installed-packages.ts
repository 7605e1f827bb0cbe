/** The packages that do not come with Lango: which are there, and what commands say about those that are not. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isRecord } from '../base/is-record.js'
import { own } from '../base/own.js'
import type { LoadedConfig } from '../config/load-config.js'
import { AgentError } from '../errors.js'
import { loadOptional, OPTIONAL_NAMES, OPTIONAL_PACKAGES, type OptionalName, packageOf } from '../packages.js'
import { PROVIDER_PACKAGES, vendorRow } from '../provider/vendors.js'
import { called } from './next-command.js'

/** The version of a package that code in a folder would load; by default the code of Lango. */
export function findVersion(
  name: string,
  from = dirname(fileURLToPath(import.meta.url)),
): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    try {
      const file = readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')
      return (JSON.parse(file) as { version?: string }).version ?? 'unknown'
    } catch {
      if (folder === dirname(folder)) return undefined
    }
  }
}

/** The versions of the packages of a name, or `undefined` when one is missing. */
export function installedVersions(name: OptionalName): string[] | undefined {
  const versions = OPTIONAL_PACKAGES[name].install.flatMap(spec => findVersion(packageOf(spec)) ?? [])
  return versions.length < OPTIONAL_PACKAGES[name].install.length ? undefined : versions
}

/** One line: what is there, and what can be added. */
export function packageSummary(): string {
  const present = OPTIONAL_NAMES.flatMap(name => {
    const [found] = installedVersions(name) ?? []
    return found === undefined ? [] : [`${name} ${found}`]
  })
  const absent = OPTIONAL_NAMES.filter(name => installedVersions(name) === undefined)
  const more = absent.length === 0 ? '' : `; ${called('add')} NAME installs ${absent.join(', ')}`
  return `${present.join(', ') || 'none beside those of Lango'}${more}`
}

/**
 * Refuses a model whose package is missing before anything is opened. The SDK is not loaded for that; only where no
 * folder has it is loading tried, because not every package manager uses folders.
 */
export async function requireModelPackage({ model = '', config }: LoadedConfig): Promise<void> {
  const id = model.split('/')[0] ?? ''
  const configured = own<unknown>(config.providers, id)
  const type = isRecord(configured) ? configured.type : vendorRow(id)?.type
  const name = typeof type === 'string' ? own(PROVIDER_PACKAGES, type) : undefined
  if (name === undefined || installedVersions(name)) return
  const [spec] = OPTIONAL_PACKAGES[name].install
  await loadOptional(name, () => import(packageOf(spec)))
}

/** The name that `lango add` takes for what an error says is missing. */
export function missingName(error: unknown): OptionalName | undefined {
  const name = error instanceof AgentError ? error.details.add : undefined
  return typeof name === 'string' && Object.hasOwn(OPTIONAL_PACKAGES, name)
    ? (name as OptionalName)
    : undefined
}

/** An error's sentence, with the command that installs what is missing. */
export function withCommand(error: AgentError): string {
  const name = missingName(error)
  return name === undefined ? error.message : `${error.message} (or: ${called(`add ${name}`)})`
}
