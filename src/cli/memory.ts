/** `lango memory`: what is noted about a session, and where it comes from. */

import { AgentError } from '../errors.js'
import { indexSession } from '../memory/index-session.js'
import { messageLine } from '../memory/recall.js'
import type { SessionKey } from '../session/message.js'
import type { StoredObservation } from '../session/session-memory.js'
import type { SessionStore } from '../session/session-store.js'
import { type Flags, wholeNumber } from './command.js'
import type { Io } from './io.js'
import { findSession, withStore } from './open-command-store.js'
import { note, print, printJson } from './output.js'
import { plainLine } from './plain-text.js'
import { count } from './wording.js'

/** `lango memory list`. */
export async function listMemory(io: Io, [sessionId = '']: readonly string[], flags: Flags): Promise<number> {
  return withMemory(io, sessionId, flags, async (store, key) => {
    const progress = await store.memory.progress(key)
    const all = flags.all === true
    const observations = await readAll(store, key, !all)
    if (flags.json) await printJson(io, { ...progress, notes: observations })
    else if (observations.length === 0) note(io, `Nothing is noted about session "${sessionId}".`)
    else await print(io, `${observations.map(noteLine).join('\n')}\n`)
    return 0
  })
}

/** `lango memory show`. */
export async function showMemory(
  io: Io,
  [sessionId = '', text]: readonly string[],
  flags: Flags,
): Promise<number> {
  const number = wholeNumber('the number of the note', text, 1) ?? 1
  return withMemory(io, sessionId, flags, async (store, key) => {
    const observation = await find(store, key, number)
    const { fromSeq, toSeq } = observation
    const last = Math.min(toSeq, fromSeq + MOST_SOURCES - 1)
    const seqs = Array.from({ length: last - fromSeq + 1 }, (_, index) => fromSeq + index)
    const messages = await store.memory.readMessages(key, seqs)
    const made = (await readAll(store, key, false)).filter(
      ({ supersededBy, number: own }) => supersededBy === number && own !== number,
    )
    if (flags.json) await printJson(io, { note: observation, replaces: made, messages })
    else {
      const lines = messages.map(message => `  ${message.seq}  ${plainLine(messageLine(message))}`)
      await print(
        io,
        `${[noteLine(observation), ...made.map(each => `  replaces ${noteLine(each)}`), ...lines].join('\n')}\n`,
      )
    }
    return 0
  })
}

const MOST_SOURCES = 200

/** `lango memory forget`. */
export async function forgetMemory(
  io: Io,
  [sessionId = '', ...texts]: readonly string[],
  flags: Flags,
): Promise<number> {
  const numbers = texts.map(text => wholeNumber('the number of a note', text, 1) ?? 0)
  if (numbers.length === 0 && flags.all !== true)
    throw new AgentError(
      'invalid-argument',
      'Name the numbers of notes, or give --all for every note of the session.',
    )
  return withMemory(io, sessionId, flags, async (store, key) => {
    const known = await readAll(store, key, false)
    const chosen = flags.all === true ? known.map(({ number }) => number) : numbers
    for (const number of chosen) await find(store, key, number)
    const forgotten = chosen.length === 0 ? 0 : await store.memory.forget(key, chosen)
    if (flags.json) await printJson(io, { forgotten })
    else await print(io, `${count(forgotten, 'note')} forgotten.\n`)
    return 0
  })
}

/** `lango memory rebuild`. */
export async function rebuildMemory(
  io: Io,
  [sessionId = '']: readonly string[],
  flags: Flags,
): Promise<number> {
  return withMemory(io, sessionId, flags, async (store, key) => {
    await store.memory.reset(key, { index: true, observations: true })
    const { indexed } = await indexSession(store, key)
    if (flags.json) await printJson(io, { indexed })
    else
      await print(
        io,
        `${count(indexed, 'message')} indexed. Notes are taken again by the next run of the session.\n`,
      )
    return 0
  })
}

/** `lango memory export`: one line of JSON for each note, those that were superseded included. */
export async function exportMemory(
  io: Io,
  [sessionId = '']: readonly string[],
  flags: Flags,
): Promise<number> {
  return withMemory(io, sessionId, flags, async (store, key) => {
    for (const observation of await readAll(store, key, false))
      await print(io, `${JSON.stringify(observation)}\n`)
    return 0
  })
}

async function withMemory(
  io: Io,
  sessionId: string,
  flags: Flags,
  work: (store: SessionStore, key: SessionKey) => Promise<number>,
): Promise<number> {
  return withStore(io, flags, async opened =>
    work(opened.store, await findSession(opened, sessionId, flags.user)),
  )
}

async function readAll(store: SessionStore, key: SessionKey, current: boolean): Promise<StoredObservation[]> {
  const all: StoredObservation[] = []
  for (;;) {
    const page = await store.memory.readObservations(key, { current, afterNumber: all.at(-1)?.number ?? 0 })
    if (page.length === 0) return all
    all.push(...page)
  }
}

async function find(store: SessionStore, key: SessionKey, number: number): Promise<StoredObservation> {
  const [observation] = await store.memory.readObservations(key, { numbers: [number] })
  if (observation) return observation
  throw new AgentError(
    'invalid-argument',
    `Session "${key.sessionId}" has no note ${number}: "lango memory list ${key.sessionId} --all" shows its notes.`,
  )
}

function noteLine({ number, kind, fromSeq, toSeq, text, origin, supersededBy }: StoredObservation): string {
  const source = fromSeq === toSeq ? `message ${fromSeq}` : `messages ${fromSeq}-${toSeq}`
  const by = supersededBy === undefined || supersededBy === number ? '' : `, replaced by ${supersededBy}`
  return `[${number}] ${kind} (${source}, by ${plainLine(origin)}${by}): ${plainLine(text)}`
}
