// Every command of README, CONTRIBUTING and docs is run, or is listed with the reason why not. LANGO_ALL_COMMANDS=1 runs those
// of all pages with the packed package in an empty project; without it, those of the pages that a reader begins with.
import { chmod, cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { installPackage } from '../../scripts/check-package.mjs'
import { BRICKED, writeAdkDatabase } from '../cli/import-adk-database.js'
import { lango, outcomeOf, startLango } from '../cli/lango.js'
import { UI_MESSAGES } from '../formats/foreign-conversations.js'
import { installWithoutPeers } from '../support/lango-without-peers.js'
import { makeFolder, removeFolder, temporaryFolder } from '../support/temporary-folder.js'
import { filesOf, findCommands, isAsShown, reasonNotToRun, runCommand, staleReasons } from './commands.js'

const ROOT = join(import.meta.dirname, '../..')
const COMMANDS = findCommands(ROOT)
const RUN = COMMANDS.filter(command => reasonNotToRun(command) === undefined)

const ALL = process.env.LANGO_ALL_COMMANDS === '1'
/** Begins in an empty folder. */
const GUIDE = 'docs/getting-started.md'
/** Their commands print what they show. */
const COMPARED = ['README.md', GUIDE]
const FIRST_PAGES = [GUIDE, 'docs/you-have-a-400.md', 'docs/moving.md']
const PAGES = [...new Set(RUN.map(({ file }) => file))].filter(file => ALL || FIRST_PAGES.includes(file))

test('commands are found in blocks of both kinds, and no reason is left over', () => {
  expect(COMMANDS.length).toBeGreaterThan(90)
  expect(RUN.length).toBeGreaterThan(60)
  expect(COMMANDS.map(({ text }) => text)).toEqual(
    expect.arrayContaining(['lango sessions list', 'npx lango lint request.json']),
  )
  expect(staleReasons(COMMANDS)).toEqual([])
})

test('finds the files of the guide, and tells other output from what is shown', () => {
  const page =
    'Text. Save it as `a.mjs`:\n\n```js\n// a.mjs\n```\n\nSave this as `b.json`:\n\n```json\n{}\n```\n'
  expect(filesOf(page)).toEqual([
    { name: 'a.mjs', content: '// a.mjs\n' },
    { name: 'b.json', content: '{}\n' },
  ])
  expect(isAsShown('one  2 min ago\nmore\nlast (x)\n', 'one just now\n…\nlast (x)\n')).toBe(true)
  expect(isAsShown('one just now\nother\n', 'one just now\n')).toBe(false)
  expect(isAsShown('', 'one\n')).toBe(false)
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

async function prepared(): Promise<string> {
  const cwd = await temporaryFolder()
  await mkdir(join(cwd, 'backups'))
  await mkdir(join(cwd, '.config/fish/completions'), { recursive: true })
  for (const session of ['s1', 'trip', 'refund', 'holiday'])
    expect(await lango(['run', '--session', session, 'Hello there'], { cwd })).toMatchObject({ code: 0 })
  await lango(['sessions', 'export', 's1', '-o', 's1.jsonl'], { cwd })
  await lango(['run', '--session', 's1', '--user', 'ann', 'Hello'], { cwd })
  await lango(['sessions', 'delete', 's1', '--user', 'ann', '--yes'], { cwd })
  await writeFile(join(cwd, 'notes.md'), 'Some notes.\n')
  await writeFile(join(cwd, 'notes.txt'), 'Some notes.\n')
  await writeFile(join(cwd, 'request.json'), JSON.stringify(REFUSED))
  await writeFile(join(cwd, 'messages.json'), JSON.stringify(UI_MESSAGES))
  await cp(join(ROOT, 'test/clients/histories/mastra/mastra.db'), join(cwd, 'mastra.db'))
  for (const name of ['adk.db', 'sessions.db']) writeAdkDatabase(join(cwd, name), 'typescript', BRICKED)
  return cwd
}

let project = ''
afterAll(() => (project === '' ? undefined : removeFolder(project)))

/** A folder with `lango`: of the tests, or as an installation puts it. */
async function binFolder(cwd: string): Promise<string> {
  if (ALL) {
    if (project === '') {
      project = await makeFolder()
      installPackage(project)
    }
    await symlink(join(project, 'node_modules'), join(cwd, 'node_modules'))
    await cp(join(project, 'package.json'), join(cwd, 'package.json'))
    return join(project, 'node_modules/.bin')
  }
  const installed = await installWithoutPeers(cwd, ['openai', '@anthropic-ai/sdk'])
  const file = join(cwd, 'bin', 'lango')
  await mkdir(dirname(file))
  await writeFile(file, `#!/bin/sh\nexec ${process.execPath} ${installed} "$@"\n`)
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
test.each(PAGES)('the commands of %s run', { timeout: 900_000 }, async page => {
  const cwd = page === GUIDE ? await temporaryFolder() : await prepared()
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
})
