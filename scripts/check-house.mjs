// Code rules that the linter does not have: no bare errors, no tests of a dialect's name, no leftover TO-DO comments, no
// skipped tests.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const RULES = [
  {
    name: 'no-bare-error',
    pattern: /throw new (Error|TypeError|RangeError)\(/,
    fix: 'throw an AgentError with a code, or use invariant()',
    tests: false,
  },
  {
    name: 'no-dialect-name',
    // Code may compare the driver that a URL names, but not ask a database which one it is.
    pattern:
      /\bdialect\.name\b|\bname [!=]== '(sqlite|postgres)'|\{[^}]*\bname\b[^}]*\}: Dialect\b|\binstanceof (Sqlite|Postgres)/,
    fix: 'make the difference a member of Dialect or SqlDatabase',
    tests: false,
  },
  { name: 'no-leftover', pattern: /\b(TODO|FIXME|XXX|HACK)\b/, fix: 'do it, or file an issue', tests: true },
  {
    name: 'no-skipped-test',
    pattern: /\b(it|test|describe|scenario|requirement)\.(skip|todo|only)\b|\bskipIf\b/,
    fix: 'make it run, or delete it',
    tests: true,
  },
  {
    name: 'no-tests-side-by-side',
    // Hooks and polls that are imported belong to the test that began last, whose end removes their folders.
    pattern: /\b(it|test|describe)\.concurrent\b/,
    in: /\bimport \{[^}]*\bonTestFinished\b|\bexpect\.poll\(|\b(temporaryFolder|eventually)\(/,
    fix: 'let the tests of the file run one after the other, or take hooks from the context of each test',
    tests: true,
  },
]

/** Returns one sentence per breach in the files below `root/src`, `root/web` and `root/test`. */
export function checkHouse(root) {
  return ['src', 'web', 'test'].flatMap(folder =>
    sources(join(root, folder)).flatMap(file => {
      const text = readFileSync(file, 'utf8')
      const lines = text.split('\n')
      const isTest = folder === 'test' || file.endsWith('.test.ts')
      return RULES.filter(rule => (rule.tests || !isTest) && (rule.in?.test(text) ?? true)).flatMap(rule =>
        lines.flatMap((line, index) =>
          rule.pattern.test(line) ? [`${rule.name}: ${file}:${index + 1}: ${rule.fix}`] : [],
        ),
      )
    }),
  )
}

function sources(folder) {
  try {
    return readdirSync(folder, { recursive: true })
      .map(name => join(folder, String(name)))
      .filter(name => /[.]tsx?$/.test(name) && !name.includes('node_modules'))
  } catch {
    return []
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = checkHouse(fileURLToPath(new URL('..', import.meta.url)))
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(1)
}
