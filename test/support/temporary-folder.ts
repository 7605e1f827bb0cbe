import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A new folder that is removed when the test is over. */
export async function temporaryFolder(): Promise<string> {
  const folder = await makeFolder()
  onTestFinished(() => removeFolder(folder))
  return folder
}

/** A new folder whose owner removes it. */
export function makeFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'lango-test-'))
}

export function removeFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 5 })
}
