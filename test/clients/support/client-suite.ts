/**
 * How a suite says which client it drives and what each test shows. `scripts/build-client-table.mjs` reads the titles
 * from the report and writes the table in docs/protocols.md, so nothing in that table is typed by hand.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Capability } from '../../../scripts/build-client-table.mjs'
import { createStoreDatabase, type TestDatabase } from '../../support/postgres.js'
import { makeFolder, removeFolder } from '../../support/temporary-folder.js'

/** A store for one test: a new database each time. */
export interface ClientStore {
  name: 'sqlite' | 'postgres'
  url(): Promise<string>
}

export interface ClientSuiteOptions {
  /** The name in the table. */
  client: string
  /** The package whose installed version stands beside it. Default: the name. */
  package?: string
  /** What the client or its protocol does not have, each with the reason; a column without a test needs one. */
  without?: Partial<Record<Capability, string>>
}

/** `describe('<client> <version>')`, once on SQLite and once on PostgreSQL. */
export function clientSuite(
  { client, package: name = client, without = {} }: ClientSuiteOptions,
  suite: (store: ClientStore) => void,
): void {
  describe(`${client} ${versionOf(name)}`, () => {
    for (const store of ['sqlite', 'postgres'] as const) {
      describe(store, () => suite(storeOf(store)))
    }
    for (const [capability, reason] of Object.entries(without))
      test(`without ${capability} › ${reason}`, () => expect(reason).toMatch(/^[A-Z].+\.$/))
  })
}

/** A test of one column of the table; `detail` says what is sent and what comes of it. */
export function can(capability: Capability, detail: string, run: () => Promise<void>): void {
  test(`${capability} › ${detail}`, run)
}

const FOLDERS = ['test/clients/node_modules', 'test/clients/adk-web/node_modules']

/** The version that is installed, so that the table names what was really run. */
export function versionOf(name: string): string {
  for (const folder of FOLDERS) {
    try {
      const file = readFileSync(join(folder, name, 'package.json'), 'utf8')
      return (JSON.parse(file) as { version: string }).version
    } catch {
      // It is in the other folder.
    }
  }
  throw new TypeError(`The package ${name} is not installed: npm run test:clients installs it.`)
}

function storeOf(name: ClientStore['name']): ClientStore {
  let folder = ''
  const databases: TestDatabase[] = []
  let count = 0
  beforeAll(async () => {
    if (name === 'sqlite') folder = await makeFolder()
  })
  afterAll(async () => {
    if (folder !== '') await removeFolder(folder)
    for (const database of databases) await database.drop()
  })
  const url = async () => {
    count += 1
    if (name === 'sqlite') return `sqlite:${join(folder, `${count}.db`)}`
    const database = await createStoreDatabase()
    databases.push(database)
    return database.url
  }
  return { name, url }
}
