// The declarations of all modules, emitted once for each state of the sources: the package and lango-core take theirs
// from the same folder.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/lango-declarations')
const CONFIG = 'tsconfig.build.json'
const OLD_MS = 24 * 60 * 60 * 1000

/** The folder with the declarations. The types are checked first, unless `isChecked`; the process ends when they are wrong. */
export function emitTypes({ isChecked }) {
  const folder = join(CACHE, `${digest()}${isChecked ? '' : '-checked'}`)
  if (!existsSync(folder)) compile(folder, isChecked)
  return folder
}

function compile(folder, isChecked) {
  const draft = `${folder}.${process.pid}`
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const unchecked = isChecked ? ['--noCheck'] : []
  const options = ['-p', CONFIG, '--emitDeclarationOnly', '--outDir', draft, ...unchecked]
  const { status } = spawnSync(process.execPath, [compiler, ...options], { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) {
    rmSync(draft, { recursive: true, force: true })
    process.exit(status ?? 1)
  }
  // Another process may have made the same folder meanwhile.
  if (existsSync(folder)) return rmSync(draft, { recursive: true })
  renameSync(draft, folder)
  removeOld()
}

/** A newer folder may be in use by a build that runs at the same time. */
function removeOld() {
  for (const name of readdirSync(CACHE)) {
    const made = statSync(join(CACHE, name), { throwIfNoEntry: false })
    if (made && Date.now() - made.mtimeMs > OLD_MS)
      rmSync(join(CACHE, name), { recursive: true, force: true })
  }
}

function digest() {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(name => join('src', name))
    .sort()
  const hash = createHash('sha256')
  for (const name of ['package-lock.json', 'tsconfig.json', CONFIG, ...sources])
    hash
      .update(`${name}\0`)
      .update(readFileSync(join(ROOT, name)))
      .update('\0')
  return hash.digest('hex').slice(0, 16)
}
