// `npm run test:lanes`: the packed package on each runtime and through each bundler. A lane runs test/lanes/program.mjs: a
// session with a tool against a strict model server on loopback, on SQLite and in memory, and then another process reads
// the stored session.
//
//   npm run test:lanes                      all lanes: packs what is built now, and installs it into an empty folder
//   npm run test:lanes -- node-22 bun       only these
//   npm run test:lanes -- --quick node-20   of dist/ as it is, with links instead of an installation
//   npm run test:lanes -- --json            the results as JSON
//
// The installed-… lanes install dist/ as it is by npm, also with --quick, and type README and docs/getting-started.md.
//
// .ci/run has these, and the three lanes that need nothing but the packages of the repository, with --quick. The others
// install some 700 MB of runtimes, Next.js and the package itself, and take minutes: they are for a release, and for those
// who change how the package is built or loads a driver.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { LANES } from '../test/lanes/lanes.mjs'
import { openHome } from '../test/lanes/support.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const { values, names } = readArguments(process.argv.slice(2))
const chosen = names.length === 0 ? LANES : LANES.filter(({ name }) => names.includes(name))
const results = await runAll(chosen)
if (values.json) console.log(JSON.stringify(results, undefined, 2))
const failed = results.filter(({ state }) => state === 'failed').length
const skipped = results.filter(({ state }) => state === 'not run').length
const passed = results.length - failed - skipped
const ends = [`${passed} passed`, `${failed} failed`, ...(skipped > 0 ? [`${skipped} not run`] : [])]
if (!values.json) console.log(ends.join(', '))
process.exit(failed > 0 ? 1 : 0)

function readArguments(words) {
  const known = LANES.map(({ name }) => name)
  const flags = words.filter(word => word.startsWith('--'))
  const lanes = words.filter(word => !word.startsWith('--'))
  const wrong =
    flags.find(flag => !['--quick', '--json', '--help'].includes(flag)) ??
    lanes.find(name => !known.includes(name))
  if (wrong !== undefined || flags.includes('--help')) {
    if (wrong !== undefined) console.error(`There is no lane or option "${wrong}".`)
    console.error(
      `npm run test:lanes -- [--quick] [--json] [LANE…]\nLanes: ${known.join(', ')}. --quick tests dist/ as it is, with links to the packages of the repository.`,
    )
    process.exit(wrong === undefined ? 0 : 1)
  }
  return { values: { quick: flags.includes('--quick'), json: flags.includes('--json') }, names: lanes }
}

async function runAll(lanes) {
  const folder = mkdtempSync(join(tmpdir(), 'lango-lanes-'))
  let server
  try {
    const home = openHome(folder, {
      quick: values.quick,
      root: ROOT,
      installs: lanes.some(lane => lane.installs),
    })
    say(`the package in an empty folder: ${home.megabytes} MB, ${home.seconds} s`)
    const testing = pathToFileURL(join(home.folder, 'node_modules/lango/dist/entries/testing.js'))
    const { startStrictProvider } = await import(testing)
    // Each run asks twice: the first answer calls the tool, the second answers.
    const script = (_request, index) =>
      index % 2 === 0
        ? { toolCalls: [{ name: 'look', args: { place: 'the second drawer' } }] }
        : { text: 'It is in the second drawer.' }
    server = await startStrictProvider({ profile: 'gemini-3', script })
    const all = []
    for (const lane of lanes) all.push(await runLane(lane, { ...home, server, quick: values.quick }))
    return all
  } finally {
    await server?.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runLane(lane, home) {
  const started = Date.now()
  const result = { name: lane.name, state: 'ok' }
  try {
    Object.assign(result, await lane.run(home))
    if (result.why !== undefined) result.state = 'not run'
  } catch (error) {
    Object.assign(result, { state: 'failed', why: String(error?.message ?? error).trim() })
  }
  result.seconds = Math.round((Date.now() - started) / 100) / 10
  const facts = [result.version, result.megabytes && `${result.megabytes} MB`, `${result.seconds} s`]
  say(
    `${result.state} ${lane.name} (${facts.filter(Boolean).join(', ')})${result.why ? `: ${result.why}` : ''}`,
  )
  return result
}

function say(line) {
  if (!values.json) console.log(line)
}
