import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import { ask, canAsk } from './ask.js'
import type { Flags } from './command.js'
import { type CommandStore, findSession, withStore } from './open-command-store.js'
import { note, print, printJson } from './output.js'
import { count } from './wording.js'

/** `lango sessions delete`. */
export async function deleteSessions(ids: readonly string[], flags: Flags): Promise<number> {
  if (flags.yes !== true && (flags.json === true || !canAsk())) {
    throw new AgentError('invalid-argument', 'Deleting cannot be undone, and nobody can be asked: say --yes.')
  }
  return withStore(flags, async opened => {
    const { keys, missing } = await lookUp(opened, [...new Set(ids)], flags.user)
    for (const message of missing.values()) if (!flags.json) note(`lango: ${message}`)
    if (keys.length > 0 && flags.yes !== true && !(await isMeant(keys))) {
      note('Nothing was deleted.')
      return 1
    }
    const deleted: string[] = []
    for (const key of keys) {
      if (await opened.store.deleteSession(key)) deleted.push(key.sessionId)
      else missing.set(key.sessionId, 'It was deleted meanwhile.')
    }
    if (flags.json) await printJson({ deleted, missing: [...missing.keys()] })
    else if (deleted.length > 0)
      await print(`Deleted ${count(deleted.length, 'session')}: ${deleted.join(', ')}.\n`)
    return missing.size > 0 ? 1 : 0
  })
}

async function isMeant(keys: readonly SessionKey[]): Promise<boolean> {
  const names = keys.map(({ sessionId }) => sessionId).join(', ')
  const answer = await ask(`Delete ${count(keys.length, 'session')} for good (${names})? [y/N] `)
  return answer === 'y' || answer === 'yes'
}

async function lookUp(
  opened: CommandStore,
  ids: readonly string[],
  user: string | undefined,
): Promise<{ keys: SessionKey[]; missing: Map<string, string> }> {
  const keys: SessionKey[] = []
  const missing = new Map<string, string>()
  for (const id of ids) {
    try {
      keys.push(await findSession(opened, id, user))
    } catch (error) {
      if (!(error instanceof AgentError && error.code === 'session-not-found')) throw error
      missing.set(id, error.message)
    }
  }
  return { keys, missing }
}
