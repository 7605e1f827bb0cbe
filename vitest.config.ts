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

/** These start first, so that none of them is still running when all others have ended. */
const LONGEST = [
  'test/run/chaos',
  'test/house/adding-a-provider',
  'test/run/interrupted-runs',
  'test/cli/trust-corpus',
  'test/examples/examples',
  'test/web/inspector',
  'test/properties/repair',
  'test/cli/run',
  'test/cli/chat',
  'test/run/concurrent-runs',
  'test/adk/restart-every-turn',
].map(name => `/${name}.test.ts`)

export default defineConfig({
  test: {
    projects: [project('alone', ALONE, []), project('shared', INCLUDE, ALONE)],
    globalSetup: ['test/support/global-setup.ts'],
    maxWorkers: 2,
    sequence: { sequencer: longestFirst() },
    dangerouslyIgnoreUnhandledErrors: false,
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
      exclude: ['**/node_modules/**', ...exclude],
      pool: 'forks',
      isolate: !isShared,
      setupFiles: isShared ? ['test/support/no-leaks.ts'] : [],
      maxWorkers: 2,
      testTimeout: 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 60_000 } },
    },
  }
}

function filesWith(pattern: RegExp): string[] {
  return ['src', 'test'].flatMap(folder =>
    readdirSync(join(import.meta.dirname, folder), { recursive: true, encoding: 'utf8' })
      .map(name => `${folder}/${name}`)
      .filter(
        name =>
          name.endsWith('.test.ts') && pattern.test(readFileSync(join(import.meta.dirname, name), 'utf8')),
      ),
  )
}

/** The order of Vitest, longest first by its records, does not know the durations in a fresh clone. */
function longestFirst() {
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      const rank = ({ moduleId, project: { name } }: TestSpecification) => {
        const isLong = LONGEST.some(ending => moduleId.endsWith(ending))
        return (name === 'shared' ? 2 : 0) + (isLong ? 0 : 1)
      }
      return (await super.sort(files)).sort((one, other) => rank(one) - rank(other))
    }
  }
}
