import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { fastFolder } from './fast-folder.js'

/** `disk`: also where there is room in memory, for tests of what reaches the disk. */
export interface FolderOptions {
  on?: 'disk'
}

/** A new folder that is removed when the test is over. */
export async function temporaryFolder(options: FolderOptions = {}): Promise<string> {
  const folder = await makeFolder(options)
  onTestFinished(() => removeFolder(folder))
  return folder
}

/** A new folder whose owner removes it. */
export async function makeFolder({ on }: FolderOptions = {}): Promise<string> {
  return mkdtemp(join(on === 'disk' ? tmpdir() : await fastFolder(), 'lango-test-'))
}

export function removeFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 5 })
}
