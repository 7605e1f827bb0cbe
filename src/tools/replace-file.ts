import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import type { OpenFolder } from './workspace-path.js'

/**
 * Writes a file beside its place and moves it there: whoever reads sees the old content or the new, never half
 * of it; a link that stands in its place is replaced, not followed; and another name of the old file (a hard
 * link, perhaps outside the workspace) keeps the old content. `isUnchanged` is asked just before the move.
 */
export async function replaceFile(
  folder: OpenFolder,
  name: string,
  content: string,
  isUnchanged: () => Promise<boolean> = async () => true,
): Promise<boolean> {
  const temporary = `.lango-${randomUUID()}.tmp`
  const mode = await modeOf(folder, name)
  const handle = await folder.file(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL)
  try {
    await handle.writeFile(content, 'utf8')
    if (mode !== undefined) await handle.chmod(mode)
    await handle.sync()
    if (!(await isUnchanged())) {
      await folder.remove(temporary)
      return false
    }
    await folder.rename(temporary, name)
    return true
  } catch (error) {
    await folder.remove(temporary).catch(() => {})
    throw error
  } finally {
    await handle.close()
  }
}

async function modeOf(folder: OpenFolder, name: string): Promise<number | undefined> {
  try {
    const facts = await folder.facts(name)
    return facts.isFile() ? facts.mode & 0o777 : undefined
  } catch {
    return undefined
  }
}
