import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MemoryCapableStore } from '../../src/memory/index-session.js'
import { openStore } from '../../src/store/open-store.js'
import { startPostgres } from '../../test/support/postgres-server.js'

/** Opens an empty store of a kind, and closes it after the work. */
export async function withStore(
  kind: string,
  work: (store: MemoryCapableStore) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'lango-bench-'))
  const server = kind === 'postgres' ? await startPostgres() : undefined
  const url = kind === 'sqlite' ? `sqlite:${join(folder, 'bench.db')}` : (server?.url ?? 'memory:')
  const store = await openStore(url)
  try {
    await work(store as MemoryCapableStore)
  } finally {
    await store.close()
    await server?.stop()
    await rm(folder, { recursive: true, force: true })
  }
}
