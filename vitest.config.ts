import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const INCLUDE = ['src/**/*.test.ts', 'test/**/*.test.ts']

/**
 * Files that get a process of their own: those that replace modules, which works only before the first import, and
 * those that hold compiler programs of the whole product. All others share the processes of the workers, because
 * loading ADK and the sources once per file would take more time than the tests.
 */
const ALONE = ['test/house/**/*.test.ts', ...filesWith(/\bvi\.(mock|doMock|resetModules)\(/)]

/** Those of more than 12 seconds start first, longest first, so that none of them is still running when all others have ended. */
const LONGEST = [
  'test/house/adding-a-provider',
  'test/house/commands',
  'test/house/structure',
  'test/house/code-blocks',
  'test/house/rules',
  'test/run/chaos',
  'test/web/inspector',
  'test/cli/trust-corpus',
  'test/run/resume-workflows',
  'test/cli/adk-samples',
  'test/run/simulate',
  'test/tools/mcp',
  'test/cli/chat',
  'test/run/interrupted-runs',
  'test/run/budget-processes',
  'test/web/chat',
  'test/conformance/store/size',
  'test/conformance/store/migrations',
  'test/cli/mcp-server',
  'test/run/schedules',
  'test/cli/acp',
  'test/conformance/store/erase',
  'test/run/append-only',
  'test/conformance/store/postgres',
  'test/web/exchange',
  'test/web/chat-rough',
  'test/web/chat-variants',
  'test/web/chat-durable',
  'test/web/gallery',
  'test/run/waiting-runs',
  'test/adk-parity/parity',
  'test/properties/growth',
  'test/cli/resumed-runs',
  'test/web/chat-rich',
  'test/conformance/store/processes',
  'test/memory/runs',
  'test/conformance/store/leases',
  'test/web/chat-accessible',
  'test/run/waiting-rounds',
  'test/cli/run',
  'test/run/fallback',
  'test/web/chat-unknown',
  'test/adk/restart-every-turn',
  'test/conformance/store/loading',
  'test/tools/mcp-asks',
  'test/adk-parity/workflows',
  'test/run/resume-more',
  'test/web/chat-demo',
  'test/web/usage-panel',
  'test/run/due-runs',
  'test/store/postgres-world',
  'test/properties/repair-judge',
  'test/adk-parity/session-service',
  'test/examples/examples',
  'test/server/streams',
].map(name => `/${name}.test.ts`)

/** One more than the cores that the suite is measured on: tests that wait for a lease or a process leave a core idle. */
const WORKERS = 3

export default defineConfig({
  test: {
    projects: [project('alone', ALONE, []), project('shared', INCLUDE, ALONE)],
    globalSetup: ['test/support/global-setup.ts'],
    maxWorkers: WORKERS,
    sequence: { sequencer: longestFirst() },
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

/**
 * The order of Vitest, longest first by its records, does not know the durations in a fresh clone. Files that have a
 * process of their own come first: between the others they would end the process that those share.
 */
function longestFirst() {
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      const rank = ({ moduleId, project: { name } }: TestSpecification) => {
        const place = LONGEST.findIndex(ending => moduleId.endsWith(ending))
        return (name === 'shared' ? 1000 : 0) + (place < 0 ? LONGEST.length : place)
      }
      return (await super.sort(files)).sort((one, other) => rank(one) - rank(other))
    }
  }
}
