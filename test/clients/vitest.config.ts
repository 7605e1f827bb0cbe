import { defineConfig } from 'vitest/config'

const ROOT = new URL('../..', import.meta.url).pathname

/** The suites of real clients. Their packages are in this folder, so `npm test` leaves them out. */
export default defineConfig({
  root: ROOT,
  test: {
    include: ['test/clients/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 3,
    // For a machine that is busy with other work: a test that waits must not fail there.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default', ['json', { outputFile: 'reports/clients.json' }]],
  },
})
