// Mutation test: plants one mistake at a time in a copy of the repository and runs the tests there until one fails. A
// mistake that no test finds is printed, and the exit code is 1. `npm run proof` runs it with `npm test` as the suite.
//
//   node scripts/mutants.mjs                      every mutant, with the tests of npm test
//   node scripts/mutants.mjs store money          only mutants with this in their name
//   node scripts/mutants.mjs --suite all          with the long tests, too
//   node scripts/mutants.mjs --tree ../old        mutants of another checkout, whose packages are installed
//   node scripts/mutants.mjs --json               the results as JSON
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/** A mistake: a text that occurs once in a file, what it becomes, and the folders whose tests are run first. */
const MUTANTS = [
  // Runs.
  mutant('run/start-not-stored', 'src/run/tool-ledger.ts', {
    from: '    if (!isCounted) await this.#markStarted(entry)\n',
    to: '',
    near: ['test/run/tool-ledger.test.ts', 'test/run/simulate.test.ts'],
  }),
  mutant('run/key-without-ordinal', 'src/run/call-key.ts', {
    from: 'tool, args, ordinal])',
    to: 'tool, args, String(ordinal).slice(0, 0)])',
    near: ['test/run/tool-ledger.test.ts'],
  }),
  mutant('run/loop-one-more', 'src/run/loop-guard.ts', {
    from: 'if (times >= this.#stopAfter)',
    to: 'if (times > this.#stopAfter)',
    near: ['src/run'],
  }),
  mutant('run/unknown-may-be-repeated', 'src/run/close-calls.ts', {
    from: "row.effect === 'once' ? OUTCOME_UNKNOWN : MAY_BE_REPEATED",
    to: 'MAY_BE_REPEATED',
    near: ['src/run', 'test/run/tool-ledger.test.ts'],
  }),
  mutant('run/divergence-unseen', 'src/run/replay.ts', {
    from: "if (entry.kind === 'model' || String(shape) !== String(shapeOf(event)))",
    to: "if (entry.kind === 'model' || (shape.length < 0 && String(shapeOf(event))))",
    near: ['src/run', 'test/run/resume.test.ts', 'test/run/resume-workflows.test.ts'],
  }),
  mutant('run/second-wrap-up', 'src/run/run-limits.ts', {
    from: '    if (this.#limit.wrapUpGranted) return []\n',
    to: '',
    near: ['src/run', 'test/run/limits.test.ts', 'test/run/budget.test.ts'],
  }),
  // Stores.
  mutant('store/lost-fence-accepted', 'src/store/log/write-entries.ts', {
    from: "    require('fence = ?', under.fence)\n",
    to: '',
    near: ['test/conformance/store/leases.test.ts', 'test/conformance/store/run-steps.test.ts'],
  }),
  mutant('store/busy-not-checked', 'src/store/log/write-entries.ts', {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a text of the source
    from: '    require(`lease_until <= ${dialect.now}`)\n',
    to: '',
    near: ['test/conformance/store/leases.test.ts'],
  }),
  mutant('store/pruned-parts-referred-to', 'src/store/log/write-entries.ts', {
    from: "  if (also.parts) require('part_count = ?', also.parts.before)\n",
    to: '',
    near: ['test/conformance/store/runs.test.ts'],
  }),
  mutant('store/every-waiter-first', 'src/store/hold-lease.ts', {
    from: 'waitMs > 0 ? first === waiter : !first?.isRefused',
    to: 'waitMs > 0 || !first?.isRefused',
    near: ['src/store/hold-lease.test.ts', 'test/conformance/store/leases.test.ts'],
  }),
  mutant('store/temporary-state-kept', 'src/store/state-scopes.ts', {
    from: "    if (name.startsWith('temp:')) continue\n",
    to: '',
    near: ['test/conformance/store/sessions.test.ts', 'test/conformance/store/messages.test.ts'],
  }),
  mutant('store/replaced-tokens-counted-twice', 'src/store/log/write-entries.ts', {
    from: 'tokens - fewer',
    to: 'tokens',
    near: ['test/conformance/store/messages.test.ts', 'test/conformance/store/loading.test.ts'],
  }),
  // Sessions.
  mutant('session/message-limit-one-less', 'src/session/fit-to-budget.ts', {
    from: 'choice.count + cost.count > most',
    to: 'choice.count + cost.count >= most',
    near: ['src/session', 'test/scenarios'],
  }),
  mutant('session/answers-pair-across-turns', 'src/session/pair-calls.ts', {
    from: '      if (item.turn !== turn) ofTurn.clear()\n',
    to: '',
    near: ['src/session', 'test/properties'],
  }),
  mutant('session/results-counted-twice', 'src/session/tokens.ts', {
    from: 'if (calls === undefined || !repeatsOutputs(message.content, calls))',
    to: 'if (calls === undefined || message.content.length >= 0)',
    near: ['src/session'],
  }),
  mutant('session/partial-sum-has-a-cost', 'src/session/usage.ts', {
    from: 'cost += usage.cost ?? Number.NaN',
    to: 'cost += usage.cost ?? 0',
    near: ['src/session'],
  }),
  mutant('session/correction-starts-a-turn', 'src/session/turn.ts', {
    from: "return role === 'user' && !byProgram && speaks",
    to: "return role === 'user' && speaks",
    near: ['src/session', 'test/run/recovery.test.ts', 'test/scenarios'],
  }),
  // Repair.
  mutant('repair/results-in-any-order', 'src/provider/repair/pair-calls.ts', {
    from: '    if (results.inCallOrder && result.part < last) return false\n',
    to: '',
    near: ['src/provider', 'test/properties'],
  }),
  mutant('repair/tail-closed-before-a-question', 'src/provider/repair/close-tail.ts', {
    from: "if (!last || next === 'user' || profile.last === 'any') return entries",
    to: "if (!last || profile.last === 'any') return entries",
    near: ['src/provider', 'test/cli/lint.test.ts'],
  }),
  mutant('repair/foreign-signature-kept', 'src/provider/repair/strip-signatures.ts', {
    from: "!isOwnOrigin(part.origin ?? { vendor: 'gemini' }, context) || ",
    to: '',
    near: ['src/provider', 'test/properties', 'test/providers'],
  }),
  mutant('repair/late-result-stays', 'src/provider/repair/drop-orphans.ts', {
    from: "    if (site.call && isLate(site) && !fates.byEntry.get(site.entry)?.has(site.part))\n      setFate(fates, site, 'late')\n",
    to: '',
    near: ['src/provider', 'test/properties'],
  }),
  mutant('repair/cut-arguments-lost', 'src/provider/repair/fix-arguments.ts', {
    from: '      raw: args,\n',
    to: '',
    near: ['src/provider', 'test/properties'],
  }),
  // Money.
  mutant('money/unreported-call-is-free', 'src/money/paid-provider.ts', {
    from: "spent === 'unknown' ? this.#amount : spent === 'nothing' ? 0 : spent",
    to: "spent === 'unknown' || spent === 'nothing' ? 0 : spent",
    near: ['test/run/budget.test.ts'],
  }),
  mutant('money/retry-not-reserved', 'src/money/paid-provider.ts', {
    from: '    if (!isBilled) return\n',
    to: '    if (isBilled || !isBilled) return\n',
    near: ['test/run/budget.test.ts'],
  }),
  mutant('money/tools-not-counted', 'src/money/count-request.ts', {
    from: 'jsonLength(tools.map(({ gemini: _twin, ...tool }) => tool)) + ',
    to: '',
    near: ['src/money'],
  }),
  mutant('money/runs-without-budget-forgotten', 'src/store/sql-spending.ts', {
    from: 'limit - sumOf(scope) - numberIn(unbudgeted, scope)',
    to: 'limit - sumOf(scope)',
    near: ['test/conformance/store/spending.test.ts'],
  }),
  // Server.
  mutant('server/foreign-page-allowed', 'src/server/security/check-origin.ts', {
    from: '  if (isForeign && !isVisit) throw foreignPage()\n',
    to: '  if (isForeign && !isVisit && asked.host === undefined) throw foreignPage()\n',
    near: ['src/server', 'test/server/attacks.test.ts'],
  }),
  mutant('server/attempts-reset-again', 'src/server/security/attempt-limit.ts', {
    from: 'if (!current || current.isLimited || current.wasReset) return',
    to: 'if (!current || current.isLimited) return',
    near: ['src/server', 'test/server/login.test.ts'],
  }),
  mutant('server/one-stream-more', 'src/server/stream-gate.ts', {
    from: 'if (count >= this.#limit)',
    to: 'if (count > this.#limit)',
    near: ['src/server', 'test/server/limits.test.ts', 'test/server/streams.test.ts'],
  }),
  mutant('server/keys-shared-by-users', 'src/server/protocols/repeated-request.ts', {
    from: "uuidOf(['key', app, user, key])",
    to: "uuidOf(['key', app, key])",
    near: ['test/server/protocols'],
  }),
]

const LEFT_OUT = new Set(['.git', 'node_modules', 'dist', 'reports'])

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    suite: { type: 'string', default: 'short' },
    tree: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
    json: { type: 'boolean', default: false },
  },
})
if (!['short', 'all'].includes(values.suite)) stop(`--suite is "${values.suite}": write short or all.`)
const chosen = MUTANTS.filter(({ name }) => positionals.every(word => name.includes(word)))
if (chosen.length === 0) stop(`No mutant has ${positionals.join(' and ')} in its name.`)

// Where the tests fail without a mistake, every mutant would count as found.
const broken = await inCopy(folder => failedTest(folder, []))
if (broken !== undefined) stop(`The suite fails without a mutant: ${broken}`)

const results = []
for (const each of chosen) {
  const result = await judge(each)
  results.push(result)
  if (!values.json)
    console.log(
      `${result.found ? 'found  ' : 'MISSED '} ${each.name} (${result.seconds} s) ${result.by ?? ''}`,
    )
}
const missed = results.filter(({ found }) => !found)
if (values.json) console.log(JSON.stringify(results, undefined, 2))
else console.log(`${results.length - missed.length} of ${results.length} mutants found`)
process.exit(missed.length > 0 ? 1 : 0)

function mutant(name, file, { from, to, near }) {
  return { name, file, from, to, near }
}

function stop(message) {
  console.error(message)
  process.exit(1)
}

/** The near tests first: most mistakes are found there. Those that are not are looked for by the whole suite. */
async function judge({ name, file, from, to, near }) {
  const started = Date.now()
  const by = await inCopy(async folder => {
    const source = readFileSync(join(folder, file), 'utf8')
    if (source.split(from).length !== 2)
      stop(`${name}: ${file} does not hold the text once. Correct the mutant.`)
    for (const path of near) if (!existsSync(join(folder, path))) stop(`${name}: there is no ${path}.`)
    writeFileSync(
      join(folder, file),
      source.replace(from, () => to),
    )
    return (await failedTest(folder, near)) ?? (await failedTest(folder, []))
  })
  return { name, found: by !== undefined, by, seconds: Math.round((Date.now() - started) / 1000) }
}

/** Works in a copy of the tree, so that the tree itself never holds a mistake. */
async function inCopy(work) {
  const tree = resolve(values.tree)
  const folder = mkdtempSync(join(tmpdir(), 'lango-mutant-'))
  try {
    cpSync(tree, folder, { recursive: true, filter: path => path === tree || !LEFT_OUT.has(basename(path)) })
    symlinkSync(join(tree, 'node_modules'), join(folder, 'node_modules'))
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The first test that fails; `undefined` when all pass. */
async function failedTest(folder, files) {
  const report = join(folder, 'reports/mutant.json')
  const tiers = values.suite === 'all' ? ['proof'] : ['long', 'proof']
  const filter = tiers.map(tier => `--tags-filter=!${tier}`)
  const code = await run(
    ['node_modules/vitest/vitest.mjs', 'run', '--bail=1', '--silent', ...filter, ...files],
    folder,
    report,
  )
  if (code === 0) return undefined
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'))
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
  const failed = tests.find(({ status }) => status === 'failed')
  const broken = testResults.find(({ status }) => status === 'failed')
  // A suite that ended for another reason has found nothing.
  if (!failed && !broken) stop(`Vitest ended with exit code ${code} and without a failed test.`)
  return failed?.fullName ?? `${broken.name}: ${broken.message.split('\n')[0]}`
}

/** In a process group of its own: a suite that is ended by its first failure leaves servers and clients of its tests. */
function run(command, cwd, report) {
  const child = spawn(process.execPath, command, {
    cwd,
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, LANGO_REPORT: report },
  })
  return new Promise(done => child.on('error', () => done(1)).on('close', code => done(code ?? 1))).finally(
    () => {
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        // Nothing was left.
      }
    },
  )
}
