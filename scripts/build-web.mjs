// Builds the web chat into dist/web if what it is made of has changed, with compressed copies beside the files.
// `node scripts/build-web.mjs [--force]`; `buildWeb` also serves `npm start` and the tests.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OUTPUT = join(ROOT, 'dist', 'web')
const STAMP = join(OUTPUT, '.digest')
const SOURCES = ['web', 'src/client', 'src/server/chat-protocol.ts', 'package-lock.json']

/** Builds the page unless it is up to date. Returns whether it was built. */
export async function buildWeb({ force = false, onStart = () => {} } = {}) {
  const digest = digestOf(SOURCES.map(name => join(ROOT, name)))
  if (!force && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === digest) return false
  onStart()
  const { build } = await import('vite')
  await build({ root: join(ROOT, 'web'), configFile: join(ROOT, 'web', 'vite.config.ts'), logLevel: 'warn' })
  compress(OUTPUT)
  writeFileSync(STAMP, digest)
  return true
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

/** Whoever serves the page need not compress it again and again. */
function compress(folder) {
  for (const file of filesIn(folder)) {
    if (!/\.(js|css|html|svg|json)$/.test(file)) continue
    const content = readFileSync(file)
    if (content.length < 1024) continue
    writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }))
    const parameters = { [constants.BROTLI_PARAM_QUALITY]: 10 }
    writeFileSync(`${file}.br`, brotliCompressSync(content, { params: parameters }))
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = await buildWeb({ force: process.argv.includes('--force') })
  console.log(built ? 'dist/web was built' : 'dist/web is up to date')
}
