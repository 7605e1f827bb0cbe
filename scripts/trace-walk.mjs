// The walk of one message, measured: which files of src have a function called between `runtime.run()` and the
// moment the request reaches the model's server, in the order of their first call. It is the second message of a
// session in SQLite whose first turn called a tool, in a runtime that has answered before; the provider is
// OpenAI's, and a strict server receives the request.
//
// Not counted: code that runs when a module is loaded; the leaves and `base`; `store` (a reader of the walk knows
// it by its contract, `session/session-store.ts`); `provider/repair` (steps that are read one by one); `testing`
// (the server).
//
// `node scripts/trace-walk.mjs [--json] [--check | --write] [folder]`: `--check` compares the walk with the list
// between the markers `<!-- walk -->` and `<!-- /walk -->` in docs/architecture.md, `--write` replaces that list.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { register } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { listedWalk, WALK_PAGE } from './check-structure.mjs'

const ASIDE = /^src\/((testing|store|base|provider\/repair)\/|(errors|logger|packages|tool)\.ts$)/
const MODEL = 'openai/gpt-5.2'

/** Traces the tree at `root`. Runs in a separate process, because modules are compiled for it. */
export async function traceWalk(root) {
  const base = pathToFileURL(`${resolve(root)}/`).href
  register('./trace-walk-hooks.mjs', import.meta.url, { data: { root: base } })
  const load = name => import(new URL(name, base).href)
  const [{ createRuntime, defineTool }, { startStrictProvider }] = [
    await load('src/index.ts'),
    await load('src/entries/testing.ts'),
  ]
  const folder = mkdtempSync(join(tmpdir(), 'lango-walk-'))
  const recorder = newRecorder()
  const server = await startStrictProvider({
    profile: 'openai-responses',
    script: (_request, index) => {
      recorder.stop()
      return index === 0 ? { toolCalls: [{ name: 'look', args: { place: 'drawer' } }] } : { text: 'Done.' }
    },
  })
  const runtime = await createRuntime({
    store: `sqlite:${join(folder, 'walk.db')}`,
    providers: { openai: { type: 'openai', apiKey: 'test-key', baseUrl: server.baseUrl } },
    agent: { name: 'root', model: MODEL, instruction: 'Be brief.', tools: [lookTool(defineTool)] },
  })
  try {
    await once(runtime, 'Where are the stamps?')
    recorder.start()
    await once(runtime, 'And the envelopes?')
    return recorder.files()
  } finally {
    await runtime.close()
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** One message. The walk ends at the server, but a failed answer would make it incomplete. */
async function once(runtime, text) {
  let finishReason
  for await (const event of runtime.run({ sessionId: 'walk', text })) finishReason = event.finishReason
  if (finishReason !== 'stop') throw new TypeError(`The traced run ended with "${finishReason}"`)
}

function lookTool(defineTool) {
  return defineTool({
    name: 'look',
    description: 'Looks somewhere',
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
    effect: 'read',
    execute: ({ place }) => ({ place, found: 'stamps' }),
  })
}

function newRecorder() {
  const seen = new Set()
  return {
    start: () => {
      globalThis.__walk = name => seen.add(name)
    },
    stop: () => {
      globalThis.__walk = undefined
    },
    files: () => [...seen].filter(name => !ASIDE.test(name)),
  }
}

/** The difference between the traced walk and the list in the docs, one sentence for each file. */
export function compareWalk(traced, listed) {
  return [
    ...traced
      .filter(file => !listed.includes(file))
      .map(file => `walk: ${file} is on the walk of a message and is not listed in ${WALK_PAGE}`),
    ...listed
      .filter(file => !traced.includes(file))
      .map(file => `walk: ${file} is listed in ${WALK_PAGE} and no function of it is called on the walk`),
  ]
}

/** The page with the list between its markers replaced. */
export function writeWalk(page, files) {
  const [start, end] = ['<!-- walk -->\n', '<!-- /walk -->']
  const [from, to] = [page.indexOf(start), page.indexOf(end)]
  if (from < 0 || to < from) throw new TypeError(`The page has no markers ${start.trim()} and ${end}`)
  const list = files.map((file, index) => `${index + 1}. \`${file}\`\n`).join('')
  return page.slice(0, from + start.length) + list + page.slice(to)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const flags = new Set(process.argv.slice(2).filter(word => word.startsWith('--')))
  const given = process.argv.slice(2).find(word => !word.startsWith('--'))
  const root = given ?? fileURLToPath(new URL('..', import.meta.url))
  const files = await traceWalk(root)
  if (flags.has('--json')) console.log(JSON.stringify({ walk: files.length, files }, null, 2))
  else if (!flags.has('--check')) for (const file of files) console.log(file)
  if (flags.has('--write')) {
    const page = join(root, WALK_PAGE)
    writeFileSync(page, writeWalk(readFileSync(page, 'utf8'), files))
  }
  const problems = flags.has('--check') ? compareWalk(files, listedWalk(root)) : []
  for (const problem of problems) console.error(problem)
  if (!flags.has('--json')) console.log(`${files.length} files from runtime.run() to the wire`)
  if (problems.length > 0) process.exit(1)
}
