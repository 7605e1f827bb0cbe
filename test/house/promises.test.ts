// The check of docs/testing.md is tested by breaking what it reads.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { comparePromises, readGuarantees, readPromises, readTests } from '../../scripts/check-promises.mjs'

const RELIABILITY =
  '## What is guaranteed\n\n| | guarantee |\n|---|---|\n| Kept | … |\n| Paid once | … |\n\n## Next\n'
const TESTING = `| promise | file | test | tier |
|---|---|---|---|
| Kept | \`test/a.test.ts\` | keeps a message | \`npm test\` |
| | \`test/a.test.ts\` | keeps every message | \`test:long\` |
| Paid once | \`test/b.test.ts\` | pays once | \`npm test\` |
`
const TESTS = [
  { file: 'test/a.test.ts', title: 'on SQLite keeps a message', status: 'passed' },
  { file: 'test/a.test.ts', title: 'keeps every message', status: 'skipped' },
  { file: 'test/b.test.ts', title: 'pays once', status: 'passed' },
]

const problemsOf = ({ reliability = RELIABILITY, testing = TESTING, tests = TESTS } = {}) =>
  comparePromises(readGuarantees(reliability), readPromises(testing), tests)

test('the check of promises passes when each guarantee has a test in npm test', () => {
  expect(readGuarantees(RELIABILITY)).toEqual(['Kept', 'Paid once'])
  expect(readPromises(TESTING).map(({ promise }) => promise)).toEqual(['Kept', 'Kept', 'Paid once'])
  expect(problemsOf()).toEqual([])
})

test.each([
  [
    'a guarantee without a row',
    { reliability: RELIABILITY.replace('\n\n## Next', '\n| In order | … |\n\n## Next') },
    '"In order" has no test in npm test',
  ],
  [
    'a guarantee whose only row is long',
    { testing: TESTING.replace('pays once | `npm test`', 'pays once | `test:long`') },
    '"Paid once" has no test in npm test',
  ],
  [
    'a test that was renamed',
    { tests: TESTS.with(2, { ...TESTS[2]!, title: 'pays' }) },
    'there is no such test',
  ],
  [
    'a test that was moved to another file',
    { tests: TESTS.with(2, { ...TESTS[2]!, file: 'test/c.test.ts' }) },
    'there is no such test',
  ],
  [
    'a test of npm test that became long',
    { tests: TESTS.with(0, { ...TESTS[0]!, status: 'skipped' }) },
    'not in npm test (it is long)',
  ],
  [
    'a test that failed',
    { tests: TESTS.with(0, { ...TESTS[0]!, status: 'failed' }) },
    'not in npm test (it failed)',
  ],
  [
    'a long test that became short',
    { tests: TESTS.with(1, { ...TESTS[1]!, status: 'passed' }) },
    'not in test:long',
  ],
  [
    'an unknown tier',
    { testing: TESTING.replace('every message | `test:long`', 'every message | `sometimes`') },
    'the tier is "sometimes"',
  ],
  ['a page without the table of guarantees', { reliability: '# Reliability\n' }, 'was not found'],
])('the check of promises reports %s', (_, broken, expected) => {
  expect(problemsOf(broken).join('\n')).toContain(expected)
})

test('the check of promises reads files and states from the report of Vitest', () => {
  const report = {
    testResults: [
      {
        name: '/clone/test/a.test.ts',
        assertionResults: [
          { fullName: 'one', status: 'passed' },
          { fullName: 'two', status: 'pending' },
        ],
      },
    ],
  }
  expect(readTests(report, '/clone/')).toEqual([
    { file: 'test/a.test.ts', title: 'one', status: 'passed' },
    { file: 'test/a.test.ts', title: 'two', status: 'skipped' },
  ])
})

test('docs/testing.md has a row for each guarantee of docs/reliability.md', () => {
  const read = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8')
  const promised = new Set(readPromises(read('testing.md')).map(({ promise }) => promise))
  expect(readGuarantees(read('reliability.md')).filter(name => !promised.has(name))).toEqual([])
})
