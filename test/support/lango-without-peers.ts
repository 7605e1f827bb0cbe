import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BUILT_LANGO } from './built-lango.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Puts Lango into a folder as an installation does that names nothing else: its own files, and its dependencies without
 * any optional peer. Returns the file of its command. What a test names in `also` is linked too.
 */
export async function installWithoutPeers(folder: string, also: readonly string[] = []): Promise<string> {
  const modules = join(folder, 'node_modules')
  const lango = join(modules, 'lango')
  await mkdir(lango, { recursive: true })
  await cp(join(dirname(BUILT_LANGO), '..'), join(lango, 'dist'), {
    recursive: true,
    filter: source => !source.endsWith('/web'),
  })
  await cp(join(ROOT, 'package.json'), join(lango, 'package.json'))
  const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  for (const name of [...Object.keys(dependencies), ...also]) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(ROOT, 'node_modules', name), join(modules, name), 'dir')
  }
  await writeFile(join(folder, 'package.json'), '{ "name": "empty", "private": true, "type": "module" }')
  return join(lango, 'dist/cli/main.js')
}
