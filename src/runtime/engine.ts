/** The engine of a runtime, where it is not the default: every process executes what is free. */
import { placeOf } from '../engine/dbos-client.js'
import { dbosOptions } from '../engine/engine-options.js'
import type { Logger } from '../logger.js'
import type { RunEngine } from '../run/run-engine.js'
import type { EraseReceipt, SessionStore } from '../session/session-store.js'
import type { AgentTree } from './info.js'
import type { CheckedOptions } from './options.js'

interface EngineParts {
  options: CheckedOptions
  store: SessionStore
  logger: Logger
}

/** The engine that the options name. It is not open yet. */
export async function createEngine(
  { options, store, logger }: EngineParts,
  agents: AgentTree,
  maxRunning: number,
): Promise<RunEngine | undefined> {
  const dbos = dbosOptions(options.engine)
  if (!dbos) return undefined
  const { openDbosEngine, versionOf } = await import('../engine/dbos.js')
  return openDbosEngine({
    ...{ options: dbos, place: placeIn(options, dbos), store, logger },
    maxRunning: options.runs?.maxRunning ?? maxRunning,
    version: versionOf(agents),
  })
}

/** Removes what the engine keeps about the runs of a user, after the store has erased them. */
export async function eraseFromEngine(
  { options, logger }: Omit<EngineParts, 'store'>,
  userId: string,
  receipt: EraseReceipt,
): Promise<EraseReceipt> {
  const dbos = dbosOptions(options.engine)
  if (!dbos) return receipt
  const { eraseFromDbos } = await import('../engine/dbos.js')
  await eraseFromDbos(placeIn(options, dbos), userId, logger)
  return receipt
}

function placeIn({ store, app }: CheckedOptions, dbos: NonNullable<ReturnType<typeof dbosOptions>>) {
  return placeOf(dbos, typeof store === 'string' ? store : '', app)
}
