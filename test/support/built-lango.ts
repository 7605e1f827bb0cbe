/**
 * Lango, the scripts of this folder and the examples as JavaScript, for tests that start them as programs: the package
 * as it is published, and file by file what the scripts import. Made once for each state of the sources: a start from
 * TypeScript costs twice the time, and the tests start some hundred processes. For the same reason these programs load
 * the largest packages from a bundle. The tests in the process of a worker, the tests of what is loaded when, and the
 * check of the package load them as they are published.
 */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import {
  copyFile,
  cp,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { buildCode } from '../../scripts/build-code.mjs'
import { BUNDLED_BY, bundlePackages } from './bundled-packages.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
// Below node_modules, so that the packages are found. The folder has a copy of package.json, so `lango` and
// `lango/*` in the examples are its own `dist`, as they are for a user.
const CACHE = join(ROOT, 'node_modules/.cache/lango-built')
const OLD_MS = 24 * 60 * 60 * 1000
/** How long a worker waits for another one. */
const CLAIM_MS = 60_000

/** Where the files of a folder of the repository are put. */
const FOLDERS = { src: 'src', 'test/support': 'test/support', examples: 'examples', chaos: 'chaos' }

const BUILT = await build()

/** The file that `node` starts for the command line. */
export const BUILT_LANGO = join(BUILT, 'dist/cli/main.js')

/** The file that `node` starts for a TypeScript file of one of these folders. */
export function builtFile(folder: 'test/support' | 'examples' | 'chaos', name: string): string {
  return join(BUILT, folder, name.replace(/\.ts$/, '.js'))
}

/**
 * A copy of the built sources with other texts, by names such as `src/index.ts`: a folder below node_modules, where the
 * packages are found. The caller removes it.
 */
export async function builtCopy(texts: ReadonlyMap<string, string>): Promise<string> {
  const folder = join(CACHE, `copy-${randomUUID()}`)
  await cp(join(BUILT, 'src'), join(folder, 'src'), { recursive: true })
  await symlink(await realpath(join(BUILT, 'node_modules')), join(folder, 'node_modules'))
  await copyFile(join(ROOT, 'package.json'), join(folder, 'package.json'))
  await writeCode(
    folder,
    [...texts].map(([name, text]) => ({ file: name, output: name.replace(/\.ts$/, '.js'), text })),
  )
  return folder
}

interface Source {
  /** Of the TypeScript. */
  file: string
  /** Of the JavaScript, in the folder that is made. */
  output: string
  text: string
}

async function build(): Promise<string> {
  const sources = (await Promise.all(Object.entries(FOLDERS).map(readSources))).flat()
  const hash = createHash('sha256')
  for (const name of ['package.json', 'scripts/build-code.mjs', 'scripts/plain-spreads.mjs'])
    hash.update(await readFile(join(ROOT, name)))
  for (const { output, text } of sources) hash.update(`${output}\0${text}\0`)
  const packages = await bundledPackages()
  const folder = join(CACHE, hash.update(packages).digest('hex').slice(0, 16))
  if (!existsSync(folder)) await fill(folder, sources, packages)
  return folder
}

/** A folder as `node_modules` with the bundled packages, made once for each set of installed packages. */
async function bundledPackages(): Promise<string> {
  const hash = createHash('sha256').update(await readFile(join(ROOT, 'node_modules/.package-lock.json')))
  for (const file of BUNDLED_BY) hash.update(await readFile(file))
  const folder = join(CACHE, `packages-${hash.digest('hex').slice(0, 16)}`)
  if (!existsSync(folder)) await publish(folder, bundlePackages)
  return folder
}

async function readSources([from, to]: [from: string, to: string]): Promise<Source[]> {
  const names = (await readdir(join(ROOT, from), { recursive: true })).filter(
    name => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  )
  return Promise.all(
    names.sort().map(async name => {
      const file = join(ROOT, from, name)
      const output = join(to, name.replace(/\.ts$/, '.js'))
      return { file, output, text: await readFile(file, 'utf8') }
    }),
  )
}

async function fill(folder: string, sources: readonly Source[], packages: string): Promise<void> {
  await publish(folder, async draft => {
    await writeCode(draft, sources)
    await buildCode(join(draft, 'dist'))
    await copyFile(join(ROOT, 'package.json'), join(draft, 'package.json'))
    await symlink(join(ROOT, 'dist/web'), join(draft, 'dist/web'))
    await symlink(packages, join(draft, 'node_modules'))
  })
  await removeOld(packages)
}

async function writeCode(folder: string, sources: readonly Source[]): Promise<void> {
  const { transformWithOxc } = await import('vite')
  for (const { file, output, text } of sources) {
    const target = join(folder, output)
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, (await transformWithOxc(text, file)).code)
  }
}

/**
 * The folder appears when it is complete. Of the workers that need it at once one makes it; the others wait for it, and
 * make it themselves when that one was killed.
 */
async function publish(folder: string, make: (draft: string) => Promise<void>): Promise<void> {
  const claim = `${folder}.claim`
  await mkdir(CACHE, { recursive: true })
  const isFirst = await mkdir(claim).then(
    () => true,
    () => false,
  )
  if (!isFirst && (await appears(folder, claim))) return
  const draft = `${folder}.${randomUUID()}`
  try {
    await make(draft)
    await rename(draft, folder).catch(async error => {
      await rm(draft, { recursive: true, force: true })
      if (!existsSync(folder)) throw error
    })
  } finally {
    await rm(claim, { recursive: true, force: true })
  }
}

async function appears(folder: string, claim: string): Promise<boolean> {
  const deadline = Date.now() + CLAIM_MS
  while (!existsSync(folder) && existsSync(claim) && Date.now() < deadline) await sleep(50)
  return existsSync(folder)
}

async function removeOld(packages: string): Promise<void> {
  for (const name of (await readdir(CACHE)).filter(found => join(CACHE, found) !== packages)) {
    const made = await stat(join(CACHE, name)).catch(() => undefined)
    if (made && Date.now() - made.mtimeMs > OLD_MS)
      await rm(join(CACHE, name), { recursive: true, force: true })
  }
}
