import { AgentError } from '../errors.js'
import { exportLines } from '../formats/session-lines.js'
import { isUserArtifact } from '../session/artifacts.js'
import type { SessionKey } from '../session/message.js'
import type { Flags } from './command.js'
import { interruptible } from './interruptible.js'
import { intoFile, type Write } from './into-file.js'
import { asTyped, type Io, pathOf } from './io.js'
import { type CommandStore, findSession, sessionKeys, withStore } from './open-command-store.js'
import { note, Progress, print } from './output.js'
import { plainLine } from './plain-text.js'
import { count, grouped } from './wording.js'

/** A session of as many messages takes a while. */
const LONG = 500

/** `lango sessions export`. */
export async function exportSessions(io: Io, ids: readonly string[], flags: Flags): Promise<number> {
  if (flags.all === true ? ids.length > 0 : ids.length === 0) {
    const message = flags.all
      ? 'Session ids and --all cannot be combined.'
      : 'Pass the ids of sessions, or --all.'
    throw new AgentError('invalid-argument', message)
  }
  if (flags.to !== undefined && flags.to !== 'lango') return exportAs(io, flags.to, ids, flags)
  return interruptible(io, signal =>
    withStore(io, flags, opened => exportFrom(io, opened, { ids, flags, signal })),
  )
}

/** One session in the form of another framework. What the form has no place for is named on standard error. */
async function exportAs(io: Io, to: string, ids: readonly string[], flags: Flags): Promise<number> {
  const { exportFormat, writeSession } = await import('../runtime/export-session.js')
  const format = exportFormat(to)
  const [id, ...others] = ids
  if (id === undefined || others.length > 0 || format === 'lango') {
    throw new AgentError('invalid-argument', `A file of ${to} holds one session: pass one id.`)
  }
  return withStore(io, flags, async opened => {
    const key = await findSession(opened, id, flags.user)
    const written = await writeSession(opened.store, key, format)
    if (!written) throw new AgentError('session-not-found', `There is no session "${id}".`)
    const { content, leftOut, notes } = written
    const text = `${JSON.stringify(content, null, 2)}\n`
    const { output } = flags
    if (output === undefined || output === '-') await print(io, text)
    else {
      await asTyped(
        io,
        output,
        intoFile(pathOf(io, output), write => write(text)),
      )
      note(io, `Exported ${plainLine(id)} as ${format} to ${output}.`)
    }
    for (const line of notes) note(io, plainLine(line))
    if (leftOut.length > 0) note(io, `Not written: ${plainLine(leftOut.join(', '))}.`)
    return 0
  })
}

async function exportFrom(
  io: Io,
  opened: CommandStore,
  { ids, flags, signal }: { ids: readonly string[]; flags: Flags; signal: AbortSignal },
): Promise<number> {
  const { output, all, user } = flags
  const keys = all ? sessionKeys(opened, { userId: user }) : namedSessions(opened, ids, user)
  const writeTo = (write: Write) =>
    writeSessions(io, opened, keys, text => {
      signal.throwIfAborted()
      return write(text)
    })
  if (output === undefined || output === '-') {
    await writeTo(text => print(io, text))
    return 0
  }
  const { sessions, messages } = await asTyped(io, output, intoFile(pathOf(io, output), writeTo))
  note(io, `Exported ${count(sessions, 'session')} with ${count(messages, 'message')} to ${output}.`)
  return 0
}

interface Exported {
  sessions: number
  messages: number
}

async function writeSessions(
  io: Io,
  { store }: CommandStore,
  keys: AsyncIterable<SessionKey>,
  write: Write,
): Promise<Exported> {
  const progress = new Progress(io)
  const done = { sessions: 0, messages: 0 }
  const users = new Set<string>()
  try {
    for await (const key of keys) {
      // Artifacts of a user are written with the first session of the user.
      const isFirst = !users.has(key.userId)
      let isThere = false
      for await (const part of exportLines(store, key, name => isFirst || !isUserArtifact(name))) {
        isThere = true
        await write(part.text)
        done.messages += part.messages
        progress.report(() => soFar(done, key, part))
      }
      // Deleted since it was listed.
      if (!isThere) continue
      users.add(key.userId)
      done.sessions += 1
    }
  } finally {
    progress.end()
  }
  return done
}

/** The position within a session is shown only when the session is long. */
function soFar(
  { sessions, messages }: Exported,
  { sessionId }: SessionKey,
  { throughSeq, totalMessages }: { throughSeq: number; totalMessages: number },
): string {
  const within =
    totalMessages < LONG
      ? ''
      : `; message ${grouped(throughSeq)} of ${grouped(totalMessages)} in ${plainLine(sessionId)}`
  return `exported ${count(sessions, 'session')}, ${count(messages, 'message')}${within}`
}

async function* namedSessions(
  opened: CommandStore,
  ids: readonly string[],
  user: string | undefined,
): AsyncGenerator<SessionKey> {
  // All are looked up before the first line is written: a mistyped id must not leave a partial export.
  const keys: SessionKey[] = []
  for (const id of ids) keys.push(await findSession(opened, id, user))
  yield* keys
}
