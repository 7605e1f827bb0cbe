// The table of clients in docs/protocols.md, from the report of `npm run test:clients`. Nothing in it is typed by hand:
// a row is a `describe('<client> <version>')`, a column is what a test's title begins with.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The columns, in order, with what a test must show to claim one. */
export const CAPABILITIES = {
  'several turns': 'a conversation of several turns, of which the strict provider refused nothing',
  streaming: 'text arrives in pieces, before the run has ended',
  'agent tools': 'the agent runs its own tools during the answer',
  'client tools': 'tools that the client declares and runs',
  'structured output': 'an answer by a JSON schema',
  approval: 'a tool that needs approval, allowed and refused from the client',
  error: 'a failed run is reported once and readably, and the next message works',
  abort: 'the client stops the answer, and the next message works',
  reconnect: 'after a lost connection or a reload the client gets the rest of the answer',
  once: 'retries, timeouts and duplicate sends execute a tool once',
}

const BEGIN = '<!-- clients: written by `npm run test:clients -- --write` -->'
const END = '<!-- end of clients -->'

/** The rows of a Vitest JSON report, with what is wrong with its titles. */
export function readRows(report) {
  const rows = new Map()
  const problems = []
  for (const test of report.testResults.flatMap(file => file.assertionResults)) {
    const [, client, version] = /^(.+) (\d+\.\d+\.\d+\S*)$/.exec(test.ancestorTitles[0] ?? '') ?? []
    if (client === undefined) continue
    const name = `${client} ${version}`
    const [, without, capability, detail] = /^(without )?(.+?) › (.*)$/s.exec(test.title) ?? [
      '',
      '',
      test.title,
    ]
    if (!(capability in CAPABILITIES)) {
      problems.push(
        `${name} › ${test.title}: the title begins with none of ${Object.keys(CAPABILITIES).join(', ')}`,
      )
      continue
    }
    const row = rows.get(name) ?? { client, version, cells: {} }
    rows.set(name, row)
    row.cells[capability] ??= { passed: 0, failed: 0 }
    const cell = row.cells[capability]
    if (test.status !== 'passed') cell.failed += 1
    else if (without) cell.without = detail
    else cell.passed += 1
  }
  const found = [...rows.values()].sort((one, other) => {
    return (
      one.client.localeCompare(other.client) ||
      one.version.localeCompare(other.version, 'en', { numeric: true })
    )
  })
  for (const { client, version, cells } of found) {
    const missing = Object.keys(CAPABILITIES).filter(capability => !(capability in cells))
    if (missing.length > 0)
      problems.push(`${client} ${version}: no test, and no reason, for ${missing.join(', ')}`)
    for (const [capability, { failed }] of Object.entries(cells))
      if (failed > 0) problems.push(`${client} ${version}: ${failed} failed tests of ${capability}`)
  }
  return { rows: found, problems }
}

/** The table and the reasons for what is not there. */
export function renderTable(rows) {
  const reasons = []
  const columns = Object.keys(CAPABILITIES)
  const lines = rows.map(({ client, version, cells }) => {
    const shown = columns.map(column => cellText(cells[column], reasons))
    return `| ${[client, version, ...shown].join(' | ')} |`
  })
  return [
    `| client | version | ${columns.join(' | ')} |`,
    `|${'---|'.repeat(columns.length + 2)}`,
    ...lines,
    '',
    ...reasons.map((reason, index) => `${index + 1}. ${reason}`),
  ].join('\n')
}

function cellText(cell, reasons) {
  if (!cell || cell.failed > 0) return '**no**'
  if (cell.passed > 0) return 'yes'
  if (!reasons.includes(cell.without)) reasons.push(cell.without)
  return `– (${reasons.indexOf(cell.without) + 1})`
}

/** The page with this table in its place. */
export function withTable(page, table) {
  const start = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (start < 0 || end < start)
    throw new TypeError(`docs/protocols.md has no place for the table: ${BEGIN} … ${END}`)
  return `${page.slice(0, start)}${BEGIN}\n\n${table.trim()}\n\n${page.slice(end)}`
}

/** Writes the table or compares it; returns what is wrong, as sentences. */
export function updateTable({ report, pagePath, write }) {
  const { rows, problems } = readRows(report)
  const page = readFileSync(pagePath, 'utf8')
  const wanted = withTable(page, renderTable(rows))
  if (wanted === page) return problems
  if (write && problems.length === 0) writeFileSync(pagePath, wanted)
  else problems.push('docs/protocols.md: the table of clients is stale. Run npm run test:clients -- --write.')
  return problems
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = name => fileURLToPath(new URL(`../${name}`, import.meta.url))
  const report = JSON.parse(readFileSync(path('reports/clients.json'), 'utf8'))
  const write = process.argv.includes('--write')
  const problems = updateTable({ report, pagePath: path('docs/protocols.md'), write })
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
}
