// Compares docs/spec.md with the report of the last test run, both ways: a title marked done needs a passing
// test, and a test may name only titles that are listed. Runs the scenarios itself when the report is missing.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Reads `docs/spec.md`: `### requirement` headings and rows `| scenario | state |`. */
export function readSpec(markdown) {
  const scenarios = []
  let requirement = ''
  for (const line of markdown.split('\n')) {
    if (line.startsWith('### ')) requirement = line.slice(4).trim()
    const row = /^\| (?<title>[^|]+?) \| (?<state>done|open|superseded by ADR \d{4})\b/i.exec(line)
    if (row && requirement) {
      scenarios.push({ requirement, title: row.groups.title, state: row.groups.state.toLowerCase() })
    }
  }
  return scenarios
}

/** Titles of requirement and scenario of every test in a Vitest JSON report, with whether it passed. */
export function readReport(report) {
  return report.testResults
    .flatMap(file => file.assertionResults)
    .flatMap(test => {
      const requirement = test.ancestorTitles.find(title => title.startsWith('Requirement: '))
      if (!requirement || !test.title.startsWith('Scenario: ')) return []
      return [
        {
          requirement: requirement.slice('Requirement: '.length),
          title: test.title.slice('Scenario: '.length).replace(/ \[[^\]]+\]$/, ''),
          passed: test.status === 'passed',
        },
      ]
    })
}

/** What is wrong, as sentences. */
export function compare(listed, tested) {
  const name = entry => `${entry.requirement} / ${entry.title}`
  const listedNames = new Set(listed.map(name))
  const problems = []
  for (const entry of listed.filter(scenario => scenario.state === 'done')) {
    const tests = tested.filter(test => name(test) === name(entry))
    if (tests.length === 0) problems.push(`marked done, but no test: ${name(entry)}`)
    else if (!tests.every(test => test.passed))
      problems.push(`marked done, but its test fails: ${name(entry)}`)
  }
  for (const test of tested) {
    if (!listedNames.has(name(test))) problems.push(`tested, but not listed in docs/spec.md: ${name(test)}`)
  }
  return problems
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const reportFile = `${ROOT}/reports/tests.json`
  if (!existsSync(reportFile)) {
    spawnSync('npx', ['--no-install', 'vitest', 'run', 'test/scenarios'], { cwd: ROOT, stdio: 'inherit' })
  }
  const listed = readSpec(readFileSync(`${ROOT}/docs/spec.md`, 'utf8'))
  const tested = readReport(JSON.parse(readFileSync(reportFile, 'utf8')))
  const problems = compare(listed, tested)
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(1)
  const count = state => listed.filter(entry => entry.state.startsWith(state)).length
  console.log(`scenarios: ${count('done')} done, ${count('superseded')} superseded, ${count('open')} open`)
}
