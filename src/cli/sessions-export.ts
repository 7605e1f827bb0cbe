import type { FileHandle } from 'node:fs/promises'
import { AgentError, messageOf } from '../errors.js'
import { headerLine, messageLine } from '../formats/session-lines.js'
import type { SessionKey } from '../session/message.js'
import { messagePages, sessionPages } from '../session/session-pages.js'
import type { Flags } from './command.js'
import { interruptible } from './interruptible.js'
import { type CommandStore, findSession, sessionKeys, withStore } from './open-command-store.js'
import { note, Progress, print } from './output.js'
import { plainLine } from './plain-text.js'

import { count, grouped } from './wording.js'

/** Messages that are read at once. */
const PAGE = 500

/** `lango sessions export`. */
export async function exportSessions(ids: readonly string[], flags: Flags): Promise<number> {
  if (flags.all === true ? ids.length > 0 : ids.length === 0) {
    const message = flags.all
      ? 'Give either session ids or --all, not both.'
      : 'Say which session to export, or --all.'
    throw new AgentError('invalid-argument', message)
  }
  return interruptible(signal => withStore(flags, opened => exportFrom(opened, { ids, flags, signal })))
}

async function exportFrom(
  opened: CommandStore,
  { ids, flags, signal }: { ids: readonly string[]; flags: Flags; signal: AbortSignal },
): Promise<number> {
  const { output, all, user } = flags
  const keys = all ? sessionKeys(opened, { userId: user }) : namedSessions(opened, ids, user)
  const writeTo = (write: Write) =>
    writeSessions(opened, keys, text => {
      signal.throwIfAborted()
      return write(text)
    })
  if (output === undefined || output === '-') {
    await writeTo(print)
    return 0
  }
  const { sessions, messages } = await intoFile(output, writeTo)
  note(`Exported ${count(sessions, 'session')} with ${count(messages, 'message')} to ${output}.`)
  return 0
}

type Write = (text: string) => Promise<unknown>

interface Exported {
  sessions: number
  messages: number
}

async function writeSessions(
  { store }: CommandStore,
  keys: AsyncIterable<SessionKey>,
  write: Write,
): Promise<Exported> {
  const progress = new Progress()
  const done = { sessions: 0, messages: 0 }
  try {
    for await (const key of keys) {
      const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
      // Deleted since it was listed.
      if (session === undefined) continue
      await write(headerLine(session))
      const end = session.totalMessages + 1
      for await (const page of messagePages(store, key, { beforeSeq: end, pageSize: PAGE })) {
        await write(page.map(messageLine).join(''))
        const at = page.at(-1)?.seq ?? 0
        done.messages += page.length
        // Where it is within a session is news only when the session is long.
        const within =
          end <= PAGE ? '' : `; at ${grouped(afterSeq)} of ${grouped(end - 1)} of ${plainLine(key.sessionId)}`
        progress.report(
          () => `exported ${count(done.sessions, 'session')}, ${count(done.messages, 'message')}${within}`,
        )
      }
      done.sessions += 1
    }
  } finally {
    progress.end()
  }
  return done
}

async function* namedSessions(
  opened: CommandStore,
  ids: readonly string[],
  user: string | undefined,
): AsyncGenerator<SessionKey> {
  // All are looked up before the first line is written: a typing error must not leave half an export.
  const keys: SessionKey[] = []
  for (const id of ids) keys.push(await findSession(opened, id, user))
  yield* keys
}

/** The file appears when it is complete: what was there before is not lost to half an export. */
async function intoFile(file: string, work: (write: Write) => Promise<Exported>): Promise<Exported> {
  const { open, rename, rm } = await import('node:fs/promises')
  const partial = `${file}.${process.pid}.partial`
  let handle: FileHandle | undefined
  try {
    handle = await open(partial, 'w', 0o600)
    const target = handle
    const result = await work(text => target.appendFile(text))
    await handle.sync()
    await handle.close()
    await rename(partial, file)
    return result
  } catch (error) {
    await handle?.close().catch(() => undefined)
    await rm(partial, { force: true })
    if (error instanceof AgentError) throw error
    throw new AgentError(
      'invalid-argument',
      `${file} cannot be written (${messageOf(error)}): choose another file.`,
      {
        cause: error,
      },
    )
  }
}
