// Builds the web chat if what it is made of has changed. The one way to build it: `npm run build`, `npm start` and
// the tests all come here. `node scripts/build-web.mjs [--force] [folder]`, by default into dist/web.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildDocs } from './build-docs.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OUTPUT = join(ROOT, 'dist', 'web')
const STAMP = '.digest'
const SOURCES = [
  'web',
  'src/client',
  'src/transcript',
  'src/base',
  'src/server/chat-protocol.ts',
  'package-lock.json',
]

/** Builds the page and the documentation unless they are up to date. Returns whether the page was built. */
export async function buildWeb({ folder = OUTPUT, force = false, onStart = () => {} } = {}) {
  const built = await buildPage({ folder, force, onStart })
  await buildDocs({ folder })
  return built
}

async function buildPage({ folder, force, onStart }) {
  const digest = digestOf(SOURCES.map(name => join(ROOT, name)))
  const stamp = join(folder, STAMP)
  if (!force && existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return false
  onStart()
  await inProduction(async () => {
    const { build } = await import('vite')
    const configFile = join(ROOT, 'web', 'vite.config.ts')
    await build({ configFile, mode: 'production', logLevel: 'warn', build: { outDir: folder } })
  })
  writeFileSync(stamp, digest)
  return true
}

/** A test runner's own mode would build React with all its checks, at a third of the speed. */
async function inProduction(work) {
  const before = process.env.NODE_ENV
  process.env.NODE_ENV = 'production'
  try {
    await work()
  } finally {
    if (before === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = before
  }
}

function digestOf(places) {
  const hash = createHash('sha256')
  for (const file of places.flatMap(filesIn))
    hash.update(relative(ROOT, file)).update('\0').update(readFileSync(file))
  return hash.digest('hex')
}

function filesIn(place) {
  if (!statSync(place).isDirectory()) return [place]
  return readdirSync(place, { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules' && !name.startsWith('.'))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap(({ name }) => filesIn(join(place, name)))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [given] = process.argv.slice(2).filter(word => !word.startsWith('--'))
  const folder = given === undefined ? OUTPUT : resolve(given)
  const built = await buildWeb({ folder, force: process.argv.includes('--force') })
  const name = relative(ROOT, folder)
  console.log(built ? `${name} was built` : `${name} is up to date`)
}
