// Compares the table of promises in docs/testing.md with docs/reliability.md and the report of the last `npm test`:
//
// - every row of "What is guaranteed" in docs/reliability.md has a test in `npm test`, and so has every other promise;
// - every test that the table names exists: it has passed in `npm test`, or is one of the long ones.
//
// The report lists long tests as skipped, so both tiers are known after `npm test`.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TIERS = ['npm test', 'test:long']

/** The first column of the table "What is guaranteed". */
export function readGuarantees(markdown) {
  const section = /^## What is guaranteed$(?<text>[\s\S]*?)^## /m.exec(markdown)?.groups.text ?? ''
  return [...section.matchAll(/^\| (?<name>[^|]+?) \|/gm)].map(({ groups }) => groups.name)
}

/** Rows `| promise | file | title | tier |`; an empty first cell repeats the promise above it. */
export function readPromises(markdown) {
  const rows = [
    ...markdown.matchAll(
      /^\| (?<promise>[^|]*?) ?\| `(?<file>[^`|]+\.test\.ts)` \| (?<title>[^|]+?) \| `?(?<tier>[^|`]+?)`? \|$/gm,
    ),
  ].map(({ groups }) => ({ ...groups }))
  let promise = ''
  for (const row of rows) {
    promise = row.promise || promise
    row.promise = promise
  }
  return rows
}

/** Returns one sentence per problem. `tests` are `{ file, title, status }`. */
export function comparePromises(guarantees, promises, tests) {
  const problems = []
  if (guarantees.length === 0)
    problems.push('docs/reliability.md: the table "What is guaranteed" was not found')
  const guarded = new Set(promises.filter(({ tier }) => tier === TIERS[0]).map(({ promise }) => promise))
  for (const name of new Set([...guarantees, ...promises.map(({ promise }) => promise)]))
    if (!guarded.has(name)) problems.push(`docs/testing.md: "${name}" has no test in npm test`)
  for (const { promise, file, title, tier } of promises) {
    const row = `docs/testing.md: "${promise}", ${file}, "${title}"`
    if (!TIERS.includes(tier)) problems.push(`${row}: the tier is "${tier}", not one of ${TIERS.join(', ')}`)
    const named = tests.filter(test => test.file === file && test.title.includes(title))
    const wanted = tier === TIERS[0] ? 'passed' : 'skipped'
    if (named.length === 0) problems.push(`${row}: there is no such test`)
    else if (!named.some(({ status }) => status === wanted))
      problems.push(
        `${row}: not in ${tier} (it ${named[0].status === 'skipped' ? 'is long' : named[0].status})`,
      )
  }
  return problems
}

/** The tests of a Vitest JSON report; a file is named from the root of the repository. */
export function readTests(report, root) {
  return report.testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ fullName, status }) => ({
      file: name.slice(root.length).replaceAll('\\', '/'),
      title: fullName,
      status: status === 'pending' ? 'skipped' : status,
    })),
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const report = `${ROOT}reports/tests.json`
  if (!existsSync(report)) {
    console.error('promises: no report. Run npm test first.')
    process.exit(1)
  }
  const read = file => readFileSync(`${ROOT}${file}`, 'utf8')
  const guarantees = readGuarantees(read('docs/reliability.md'))
  const promises = readPromises(read('docs/testing.md'))
  const problems = comparePromises(
    guarantees,
    promises,
    readTests(JSON.parse(read('reports/tests.json')), ROOT),
  )
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(1)
  console.log(`promises: ${promises.length} rows, ${guarantees.length} guarantees with a test in npm test`)
}
