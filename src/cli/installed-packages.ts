/** The packages that do not come with Lango: which are there, and what commands say about those that are not. */

import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { own } from '../base/own.js'
import type { LoadedConfig } from '../config/load-config.js'
import { AgentError } from '../errors.js'
import {
  loadOptional,
  OPTIONAL_NAMES,
  OPTIONAL_PACKAGES,
  type OptionalName,
  type OptionalPackages,
  packageOf,
} from '../packages.js'
import { PROVIDER_PACKAGES, vendorRow } from '../provider/vendors.js'
import type { Io } from './io.js'
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

/** A package that is needed, and the one in its place that is installed. */
export interface FoundPackage {
  /** As a package manager takes it. */
  spec: string
  /** Absent when it is missing. */
  installed?: { name: string; version: string }
}

/** The packages of a name, as code in a folder would load them; by default the code of Lango. */
export function findPackages(name: OptionalName, from?: string): FoundPackage[] {
  const { install, instead = {} }: OptionalPackages = OPTIONAL_PACKAGES[name]
  return install.map(spec => {
    const wanted = packageOf(spec)
    const found = [wanted, own(instead, wanted) ?? wanted].flatMap(one => {
      const version = findVersion(one, from)
      return version === undefined ? [] : [{ name: one, version }]
    })
    return { spec, ...defined({ installed: found[0] }) }
  })
}

/** The versions of the packages of a name, or `undefined` when one is missing. */
export function installedVersions(name: OptionalName): string[] | undefined {
  const found = findPackages(name)
  const versions = found.flatMap(({ installed }) => installed?.version ?? [])
  return versions.length < found.length ? undefined : versions
}

/** True if a version is in a range as package.json has them: `^1.2.3`, `>=1.2.3 <2.0.0`, and several with `||`. */
export function isInRange(version: string, range: string): boolean {
  return range.split('||').some(part =>
    part
      .trim()
      .split(/\s+/)
      .every(bound => isWithin(version, bound)),
  )
}

function isWithin(version: string, bound: string): boolean {
  const [, sign = '', numbers = ''] = /^(\^|>=|<)?(.*)$/.exec(bound) ?? []
  const lowest = numbersOf(numbers)
  const order = compare(numbersOf(version), lowest)
  if (sign === '>=') return order >= 0
  if (sign === '<') return order < 0
  if (sign === '') return order === 0
  // A caret fixes the first number that is not 0, and those before it.
  const fixed = lowest.findIndex(number => number !== 0)
  const next = lowest.map((number, place) => (place < fixed ? number : place === fixed ? number + 1 : 0))
  return order >= 0 && compare(numbersOf(version), next) < 0
}

function numbersOf(version: string): number[] {
  return [0, 1, 2].map(place => Number.parseInt(version.split('.')[place] ?? '0', 10))
}

function compare(left: readonly number[], right: readonly number[]): number {
  const place = left.findIndex((number, index) => number !== right[index])
  return place < 0 ? 0 : (left[place] ?? 0) - (right[place] ?? 0)
}

/** One line: what is there, and what can be added. */
export function packageSummary(io: Io): string {
  const present = OPTIONAL_NAMES.flatMap(name => {
    const [found] = installedVersions(name) ?? []
    return found === undefined ? [] : [`${name} ${found}`]
  })
  const absent = OPTIONAL_NAMES.filter(name => installedVersions(name) === undefined)
  const more = absent.length === 0 ? '' : `; ${called(io, 'add')} NAME installs ${absent.join(', ')}`
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
export function withCommand(io: Io, error: AgentError): string {
  const name = missingName(error)
  return name === undefined ? error.message : `${error.message} (or: ${called(io, `add ${name}`)})`
}
