// The end of `.ci/run`: names every failed test with the first lines of its error, and every step that ended with
// another code than 0, then prints `N passed, N failed`. Arguments: `name=code` for each step, in order.
//
//   node scripts/sum-reports.mjs tests=0 check=1
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

const LINES = 12

const steps = process.argv.slice(2).map(word => word.split('='))
const reports = ['tests', 'long', 'clients'].map(name => [name, read(`reports/${name}.json`)])
const files = reports.flatMap(([, report]) => report?.testResults ?? [])
const failed = files.flatMap(failuresOf)

for (const { title, message } of failed) console.log(`FAILED ${title}\n${firstLines(message)}`)
for (const [name, report] of reports) if (report === undefined) console.log(`FAILED ${name}: wrote no report`)
for (const [name, code] of steps) if (code !== '0') console.log(`FAILED step ${name}: exit code ${code}`)
const passed = reports.reduce((sum, [, report]) => sum + (report?.numPassedTests ?? 0), 0)
const missing = reports.filter(([, report]) => report === undefined).length
console.log(`${passed} passed, ${failed.length + missing} failed`)

function read(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

/** The failed tests of a file; the file itself where it failed outside of its tests. */
function failuresOf({ name, status, message, assertionResults }) {
  const file = relative('.', name)
  const tests = assertionResults
    .filter(test => test.status === 'failed')
    .map(test => ({ title: `${file} > ${test.fullName}`, message: test.failureMessages.join('\n') }))
  return tests.length === 0 && status === 'failed' ? [{ title: file, message }] : tests
}

function firstLines(text) {
  const lines = stripVTControlCharacters(text ?? '').split('\n')
  return lines
    .slice(0, LINES)
    .map(line => `  ${line}`)
    .join('\n')
}
