import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

const INCLUDE = ['src/**/*.test.ts', 'test/**/*.test.ts']

/**
 * Files that get a process of their own: those that replace modules, which works only before the first import, and
 * those that hold compiler programs of the whole product. All others share the processes of the workers, because
 * loading ADK and the sources once per file would take more time than the tests.
 */
const ALONE = ['test/house/**/*.test.ts', ...filesWith(/\bvi\.(mock|doMock|resetModules)\(/)]

/** One more than the cores that the suite is measured on: tests that wait for a lease or a process leave a core idle. */
const WORKERS = 3

/**
 * The order is that of Vitest: the project with own processes first, because between the others its files would end the
 * processes that those share; then the longest files, as far as it has run them before, or else the largest. By measured
 * durations the largest first take 1 % longer than the longest first.
 */
export default defineConfig({
  test: {
    projects: [project('alone', ALONE, []), project('shared', INCLUDE, ALONE)],
    globalSetup: ['test/support/global-setup.ts'],
    maxWorkers: WORKERS,
    dangerouslyIgnoreUnhandledErrors: false,
    tags: [
      { name: 'long', description: 'Proves at length what a test without a tag guards: npm run test:long.' },
      { name: 'proof', description: 'Takes many minutes: npm run proof.' },
    ],
    reporters: ['default', ['json', { outputFile: process.env.LANGO_REPORT ?? 'reports/tests.json' }]],
  },
})

/** The time limits are for a machine that is busy with other work: a test that waits must not fail there. */
function project(name: string, include: string[], exclude: string[]): TestProjectInlineConfiguration {
  const isShared = name === 'shared'
  return {
    test: {
      name,
      include,
      exclude: ['**/node_modules/**', 'test/clients/**', 'test/lanes/**', ...exclude],
      pool: 'forks',
      isolate: !isShared,
      setupFiles: ['test/support/fixed-seed.ts', ...(isShared ? ['test/support/no-leaks.ts'] : [])],
      maxWorkers: WORKERS,
      testTimeout: 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 60_000 } },
    },
  }
}

/** The folders of the clients and lanes have packages of their own, which may be installed at this moment. */
function filesWith(pattern: RegExp): string[] {
  const tests = readdirSync(join(import.meta.dirname, 'test')).filter(
    name => name !== 'clients' && name !== 'lanes',
  )
  return ['src', ...tests.map(name => `test/${name}`)].flatMap(folder =>
    readdirSync(join(import.meta.dirname, folder), { recursive: true, encoding: 'utf8' })
      .map(name => `${folder}/${name}`)
      .filter(
        name =>
          name.endsWith('.test.ts') && pattern.test(readFileSync(join(import.meta.dirname, name), 'utf8')),
      ),
  )
}
