// The table of clients in docs/protocols.md: written from a test report, and refused when it is stale or incomplete.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  CAPABILITIES,
  type Capability,
  readRows,
  renderTable,
  updateTable,
} from '../../scripts/build-client-table.mjs'
import { temporaryFolder } from '../support/temporary-folder.js'

type Status = 'passed' | 'failed'

function reportOf(client: string, tests: readonly [title: string, status: Status][]) {
  const assertionResults = tests.flatMap(([title, status]) =>
    ['sqlite', 'postgres'].map(store => ({ ancestorTitles: [client, store], title, status })),
  )
  return { testResults: [{ assertionResults }] }
}

const ALL = Object.keys(CAPABILITIES) as Capability[]
const complete = ALL.map((name): [string, Status] => [`${name} › it works`, 'passed'])

const PAGE =
  'Before.\n\n<!-- clients: written by `npm run test:clients -- --write` -->\n<!-- end of clients -->\n\nAfter.\n'

async function pageFile(text = PAGE): Promise<string> {
  const path = join(await temporaryFolder(), 'protocols.md')
  writeFileSync(path, text)
  return path
}

test('a row of the client table has the client, its version, what passed, and the reason for what is missing', () => {
  const tests = complete.filter(([title]) => !title.startsWith('client tools'))
  const { rows, problems } = readRows(
    reportOf('useChat of ai 5.0.277', [
      ...tests,
      ['without client tools › The agent runs its tools.', 'passed'],
    ]),
  )
  expect(problems).toEqual([])
  const table = renderTable(rows)
  expect(table).toContain('| useChat of ai | 5.0.277 | yes | yes | yes | – (1) | yes |')
  expect(table).toContain('1. The agent runs its tools.')
})

test('the client table reports a failed test, a title outside the list and a missing column', () => {
  const tests: [string, Status][] = [...complete.slice(1), ['fast › very', 'passed']]
  const failed = tests.map(([title]): [string, Status] => [
    title,
    title.startsWith('abort') ? 'failed' : 'passed',
  ])
  const { rows, problems } = readRows(reportOf('openai 6.49.0', failed))
  expect(problems.join('\n')).toMatch(/fast › very: the title begins with none of/)
  expect(problems.join('\n')).toContain('openai 6.49.0: no test, and no reason, for several turns')
  expect(problems.join('\n')).toContain('openai 6.49.0: 2 failed tests of abort')
  expect(renderTable(rows)).toContain('**no**')
})

test('the client table leaves out a group of tests whose title has no version', () => {
  expect(readRows(reportOf('a provider that fails', [['streamed', 'passed']]))).toEqual({
    rows: [],
    problems: [],
  })
})

test('a stale client table is reported until it is written; the text around it stays', async () => {
  const report = reportOf('openai 6.49.0', complete)
  const pagePath = await pageFile()
  expect(updateTable({ report, pagePath, write: false }).join()).toContain('stale')
  expect(readFileSync(pagePath, 'utf8')).toBe(PAGE)
  expect(updateTable({ report, pagePath, write: true })).toEqual([])
  expect(readFileSync(pagePath, 'utf8')).toMatch(/^Before\.[\s\S]*\| openai \| 6\.49\.0 \|[\s\S]*After\.\n$/)
  expect(updateTable({ report, pagePath, write: false })).toEqual([])
})

test('the client table is not written while a test fails', async () => {
  const pagePath = await pageFile()
  const report = reportOf('openai 6.49.0', [...complete, ['abort › again', 'failed']])
  expect(updateTable({ report, pagePath, write: true })).not.toEqual([])
  expect(readFileSync(pagePath, 'utf8')).toBe(PAGE)
})
