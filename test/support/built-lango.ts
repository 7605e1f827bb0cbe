/**
 * The command line as JavaScript, for tests that start it as a program. Types are stripped file by file, once for
 * each state of the sources: a start from TypeScript costs twice the time, and tests start it a hundred times.
 */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SOURCES = join(ROOT, 'src')
// Below node_modules, so that the packages are found.
const CACHE = join(ROOT, 'node_modules/.cache/lango-cli')
const OLD_MS = 24 * 60 * 60 * 1000

/** The file that `node` starts. */
export const BUILT_LANGO = await build()

interface Source {
  name: string
  text: string
}

async function build(): Promise<string> {
  const sources = await readSources()
  const hash = createHash('sha256')
  for (const { name, text } of sources) hash.update(`${name}\0${text}\0`)
  const folder = join(CACHE, hash.digest('hex').slice(0, 16))
  if (!existsSync(folder)) await fill(folder, sources)
  return join(folder, 'dist/cli/main.js')
}

async function readSources(): Promise<Source[]> {
  const names = (await readdir(SOURCES, { recursive: true })).filter(
    name => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  )
  return Promise.all(
    names.sort().map(async name => ({ name, text: await readFile(join(SOURCES, name), 'utf8') })),
  )
}

/** The folder appears when it is complete, because several workers may make it at once. */
async function fill(folder: string, sources: readonly Source[]): Promise<void> {
  const draft = `${folder}.${randomUUID()}`
  const { transformWithOxc } = await import('vite')
  for (const { name, text } of sources) {
    const file = join(draft, 'dist', name.replace(/\.ts$/, '.js'))
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, (await transformWithOxc(text, join(SOURCES, name))).code)
  }
  await copyFile(join(ROOT, 'package.json'), join(draft, 'package.json'))
  await symlink(join(ROOT, 'dist/web'), join(draft, 'dist/web'))
  await rename(draft, folder).catch(async error => {
    await rm(draft, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  })
  await removeOld()
}

async function removeOld(): Promise<void> {
  for (const name of await readdir(CACHE)) {
    const made = await stat(join(CACHE, name)).catch(() => undefined)
    if (made && Date.now() - made.mtimeMs > OLD_MS)
      await rm(join(CACHE, name), { recursive: true, force: true })
  }
}
