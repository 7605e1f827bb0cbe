// Every command of README, CONTRIBUTING and docs is run, or is listed with the reason why not: those of the pages that a
// reader begins with from the sources, those of all pages with the packed package in an empty project (`npm run proof`).
import { chmod, cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { BRICKED, writeAdkDatabase } from '../cli/import-adk-database.js'
import { lango, outcomeOf, startLango } from '../cli/lango.js'
import { UI_MESSAGES } from '../formats/foreign-conversations.js'
import { BUILT_LANGO } from '../support/built-lango.js'
import { makeFolder, removeFolder, temporaryFolder } from '../support/temporary-folder.js'
import { longUnless, PROOF } from '../support/tiers.js'
import { filesOf, findCommands, isAsShown, reasonNotToRun, runCommand, staleReasons } from './commands.js'

const ROOT = join(import.meta.dirname, '../..')
const COMMANDS = findCommands(ROOT)
const RUN = COMMANDS.filter(command => reasonNotToRun(command) === undefined)

/** Their commands print what they show, and need no sessions of others. */
const COMPARED = ['README.md', 'docs/getting-started.md']
const LATER = ['docs/you-have-a-400.md', 'docs/moving.md']
const PAGES = [...new Set(RUN.map(({ file }) => file))]

test('commands are found in sh and console blocks, and every reason not to run one fits a command', () => {
  expect(COMMANDS.length).toBeGreaterThan(90)
  expect(RUN.length).toBeGreaterThan(60)
  expect(COMMANDS.map(({ text }) => text)).toEqual(
    expect.arrayContaining(['lango sessions list', 'npx lango lint request.json']),
  )
  expect(staleReasons(COMMANDS)).toEqual([])
})

test('the files of a page are the blocks below "save it as"', () => {
  const page =
    'Text. Save it as `a.mjs`:\n\n```js\n// a.mjs\n```\n\nSave this as `b.json`:\n\n```json\n{}\n```\n'
  expect(filesOf(page)).toEqual([
    { name: 'a.mjs', content: '// a.mjs\n' },
    { name: 'b.json', content: '{}\n' },
  ])
})

test('output is as shown when it differs only in spaces, times and what "…" stands for', () => {
  expect(isAsShown('one  2 min ago\nmore\nlast (x)\n', 'one just now\n…\nlast (x)\n')).toBe(true)
  expect(isAsShown('one just now\nother\n', 'one just now\n')).toBe(false)
  expect(isAsShown('', 'one\n')).toBe(false)
})

test.each([
  ['exit 7', '', 'docs/a.md:3: "exit 7" ended with 7, not 0'],
  ['echo two', 'one\n', 'docs/a.md:3: "echo two" printed other than the page shows:\ntwo'],
])('the command "%s" below which a page shows "%s" is reported', async (text, shown, problem) => {
  const cwd = await temporaryFolder()
  const place = { cwd, bin: cwd, compares: true, serverUrl: async () => '' }
  expect(await runCommand({ file: 'docs/a.md', line: 3, text, shown }, place)).toContain(problem)
})

/** A request that a provider refuses: two calls, one result. */
const REFUSED = {
  model: 'gpt-4.1',
  messages: [
    { role: 'user', content: 'Pay.' },
    {
      role: 'assistant',
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'pay', arguments: '{}' } }],
    },
    { role: 'user', content: 'Well?' },
  ],
}

/** A folder with what the commands of a page need. */
async function prepared(page: string): Promise<string> {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, 'notes.md'), 'Some notes.\n')
  await writeFile(join(cwd, 'request.json'), JSON.stringify(REFUSED))
  if (COMPARED.includes(page)) return cwd
  await mkdir(join(cwd, 'backups'))
  await mkdir(join(cwd, '.config/fish/completions'), { recursive: true })
  for (const session of ['s1', 'trip', 'refund', 'holiday'])
    expect(await lango(['run', '--session', session, 'Hello there'], { cwd })).toMatchObject({ code: 0 })
  await lango(['sessions', 'export', 's1', '-o', 's1.jsonl'], { cwd })
  await lango(['run', '--session', 's1', '--user', 'ann', 'Hello'], { cwd })
  await lango(['sessions', 'delete', 's1', '--user', 'ann', '--yes'], { cwd })
  await writeFile(join(cwd, 'notes.txt'), 'Some notes.\n')
  await writeFile(join(cwd, 'messages.json'), JSON.stringify(UI_MESSAGES))
  await cp(join(ROOT, 'test/clients/histories/mastra/mastra.db'), join(cwd, 'mastra.db'))
  for (const name of ['adk.db', 'sessions.db']) writeAdkDatabase(join(cwd, name), 'typescript', BRICKED)
  return cwd
}

let project = ''
afterAll(() => (project === '' ? undefined : removeFolder(project)))

/** A folder with `lango` as an installation puts it, from what `npm run build` has made. */
async function installedBin(cwd: string): Promise<string> {
  if (project === '') {
    const { installPackage } = await import('../../scripts/check-package.mjs')
    project = await makeFolder()
    installPackage(project)
  }
  await symlink(join(project, 'node_modules'), join(cwd, 'node_modules'))
  await cp(join(project, 'package.json'), join(cwd, 'package.json'))
  return join(project, 'node_modules/.bin')
}

/** A folder with `lango` as the tests build it. */
async function builtBin(cwd: string): Promise<string> {
  await mkdir(join(cwd, 'node_modules'))
  await symlink(join(dirname(BUILT_LANGO), '../..'), join(cwd, 'node_modules/lango'))
  await symlink(join(dirname(BUILT_LANGO), '../../node_modules/zod'), join(cwd, 'node_modules/zod'))
  await writeFile(join(cwd, 'package.json'), '{ "name": "empty", "private": true, "type": "module" }')
  const file = join(cwd, 'bin', 'lango')
  await mkdir(dirname(file))
  await writeFile(file, `#!/bin/sh\nexec ${process.execPath} ${BUILT_LANGO} "$@"\n`)
  // What npx would do: this folder is no project with Lango in it.
  await writeFile(join(cwd, 'bin', 'npx'), '#!/bin/sh\nexec "$@"\n')
  for (const name of ['lango', 'npx']) await chmod(join(cwd, 'bin', name), 0o755)
  return dirname(file)
}

/** The address of a server on the store of the folder. */
async function serve(cwd: string, env: Record<string, string>): Promise<string> {
  const child = startLango(['serve', '--port', '0'], { cwd, env })
  const ended = outcomeOf(child)
  onTestFinished(async () => {
    child.kill()
    await ended
  })
  return new Promise(resolve => {
    let output = ''
    const look = (chunk: unknown) => {
      output += String(chunk)
      const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(output) ?? []
      if (address !== undefined) resolve(address)
    }
    child.stdout?.on('data', look)
    child.stderr?.on('data', look)
  })
}

/** Those of a page run in its order in one folder: later ones speak of what earlier ones made. */
for (const page of [...COMPARED, ...LATER]) {
  const tier = { ...longUnless(COMPARED.includes(page)), timeout: 900_000 }
  test(`the commands of ${page} run`, tier, () => runPage(page, builtBin))
}

test.each(PAGES)('the commands of %s run with the packed package', { ...PROOF, timeout: 900_000 }, page =>
  runPage(page, installedBin),
)

async function runPage(page: string, binFolder: (cwd: string) => Promise<string>): Promise<void> {
  const cwd = await prepared(page)
  for (const { name, content } of filesOf(await readFile(join(ROOT, page), 'utf8')))
    await writeFile(join(cwd, name), content)
  // Its first command makes that session.
  if (page === 'docs/protocols.md') await lango(['sessions', 'delete', 's1', '--yes'], { cwd })
  const servers = new Map<boolean, Promise<string>>()
  const serverUrl = (withTokens: boolean) => {
    const env: Record<string, string> = withTokens ? { LANGO_TOKENS: 'a-long-random-token-0123' } : {}
    const server = servers.get(withTokens) ?? serve(cwd, env)
    servers.set(withTokens, server)
    return server
  }
  const place = { cwd, bin: await binFolder(cwd), compares: COMPARED.includes(page), serverUrl }
  const problems: string[] = []
  for (const command of RUN.filter(({ file }) => file === page)) {
    const problem = await runCommand(command, place)
    if (problem !== undefined) problems.push(problem)
  }
  expect(problems.join('\n\n')).toBe('')
}
