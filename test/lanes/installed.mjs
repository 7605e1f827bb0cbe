// The packed package, installed by npm from the registry into projects that have nothing else.
//
// - `installedLane` types README and docs/getting-started.md as a reader does: it saves the files that the pages have
//   their reader save, runs every command in the order of the page, and compares what is printed with what is shown.
//   test/house/commands.ts reads the pages, and says which commands cannot be run; it also says how the pages mark text
//   that differs from run to run.
// - `newestLane` has the newest versions that the ranges of the optional peers allow.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { tsImport } from 'tsx/esm/api'
import { pack } from '../../scripts/check-package.mjs'
import { command, commandAside, HERE } from './support.mjs'

const ROOT = join(HERE, '../..')
const PAGES = ['docs/getting-started.md', 'README.md']
const MANIFEST = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** Installed packages come from npm's own cache where it has them; no script of a package is needed. */
const NPM = {
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_ignore_scripts: 'true',
  npm_config_loglevel: 'error',
  npm_config_prefer_offline: 'true',
}

export async function installedLane(home, { type, peers }) {
  const folder = emptyProject(home, `installed-${type}`, type)
  placeTarball(folder)
  if (peers.length > 0) install(folder, peers.map(inRange))
  const { findCommands, filesOf, reasonNotToRun, runCommand } = await tsImport(
    '../house/commands.ts',
    import.meta.url,
  )
  const place = {
    cwd: folder,
    bin: join(folder, 'node_modules/.bin'),
    compares: true,
    serverUrl: () => Promise.reject(new Error('a page has a command for a server that is not started here')),
    env: { ...NPM, ...npmPlaces() },
  }
  const typed = findCommands(ROOT).filter(one => isTyped(one.text) || reasonNotToRun(one) === undefined)
  const problems = []
  let commands = 0
  for (const page of PAGES) {
    const files = filesOf(readFileSync(join(ROOT, page), 'utf8'))
    for (const { name, content } of [...BESIDE, ...files]) writeFileSync(join(folder, name), content)
    for (const one of typed.filter(({ file }) => file === page)) {
      const problem = await runCommand(one, place)
      if (problem !== undefined) problems.push(problem)
      commands += 1
    }
  }
  if (problems.length > 0) throw new Error(`\n${problems.join('\n\n')}`)
  return { version: `${commands} commands of ${PAGES.join(', ')}` }
}

/** Commands that need the registry: other tests leave them out. */
function isTyped(text) {
  return /^npm install \.\//.test(text) || /^npx lango add \w/.test(text)
}

/** Files of a reader that README speaks of and does not show. */
const BESIDE = [
  { name: 'notes.md', content: 'Some notes.\n' },
  {
    name: 'request.json',
    content: JSON.stringify({
      model: 'gpt-4.1',
      messages: [
        { role: 'user', content: 'Pay.' },
        {
          role: 'assistant',
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'pay', arguments: '{}' } }],
        },
        { role: 'user', content: 'Well?' },
      ],
    }),
  },
]

export async function newestLane(home) {
  const folder = emptyProject(home, 'installed-newest', 'module')
  // Version 3 of OpenTelemetry has sdk-trace in its place, and npm refuses both together.
  const names = Object.keys(MANIFEST.peerDependencies).filter(
    name => name !== '@opentelemetry/sdk-trace-base',
  )
  const specs = names.map(newestInRange)
  install(folder, specs)
  install(folder, [placeTarball(folder)])
  const lango = (...args) =>
    JSON.parse(command(join(folder, 'node_modules/.bin/lango'), args, { cwd: folder }))
  const added = lango('add', ...lango('add', '--json').map(({ name }) => name), '--json')
  if (added.changed) throw new Error(`lango add changed installed packages: ${added.command}`)
  copyFileSync(join(HERE, 'newest.mjs'), join(folder, 'newest.mjs'))
  await commandAside(process.execPath, ['newest.mjs'], { cwd: folder })
  const newer = names.filter(name => !specs.includes(`${name}@${view(name, 'latest')}`))
  const outside = newer.length === 0 ? '' : `; newer than their ranges: ${newer.join(', ')}`
  return { version: `${specs.filter(spec => /^openai|otlp-http/.test(spec)).join(', ')}${outside}` }
}

/** Not left to npm, which prefers versions that ask for no newer Node. */
function newestInRange(name) {
  const versions = [view(name, MANIFEST.peerDependencies[name])].flat()
  return `${name}@${versions.sort((one, other) => one.localeCompare(other, 'en', { numeric: true })).at(-1)}`
}

function view(name, range) {
  return JSON.parse(command('npm', ['view', `${name}@${range}`, 'version', '--json'], { env: NPM }))
}

function emptyProject(home, name, type) {
  const folder = join(home.folder, `../${name}`)
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'empty', private: true, type }))
  return folder
}

/** Where the pages say that it is. */
function placeTarball(folder) {
  const place = join(folder, 'path/to')
  mkdirSync(place, { recursive: true })
  return `./path/to/${basename(pack(place))}`
}

function install(folder, packages) {
  command('npm', ['install', ...packages], { cwd: folder, env: NPM })
}

function inRange(name) {
  return `${name}@${MANIFEST.peerDependencies[name]}`
}

/** The user's settings and cache of npm: the commands run with another HOME. */
function npmPlaces() {
  const setting = name => command('npm', ['config', 'get', name]).trim()
  return { npm_config_userconfig: setting('userconfig'), npm_config_cache: setting('cache') }
}
