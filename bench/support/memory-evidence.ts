/**
 * LoCoMo conversations as messages, and the share of questions whose context holds all evidence. The ruler: a message
 * costs its UTF-8 bytes / 4 + 8 with its date in front; questions of category 5 (which have no answer) are left out; the
 * question itself is the query. An observation holds the messages that it names as its sources.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { digest } from '../../src/memory/digest.js'
import { dateWords, indexSession, type MemoryCapableStore } from '../../src/memory/index-session.js'
import { withTerms } from '../../src/memory/observer.js'
import { messageLine, recall } from '../../src/memory/recall.js'
import type { SessionKey, StoredMessage } from '../../src/session/message.js'
import type { Observed } from '../../src/session/session-memory.js'
import { withStore } from './memory-stores.js'
import type { Report } from './report.js'

const BUDGETS = [8000, 12_000]
/** Percent. Ours to reach, on conversations that the ranking was not tuned on. */
const GOALS: Record<string, number> = { 'recall 8000': 82, 'together 8000': 88, 'together 12000': 91 }
/** The conversations that the ranking was tuned on: their figures are reported apart. */
const TUNED_ON = new Set(['41', '42'])

interface Options {
  data: string
  only: string[] | undefined
  store: string | undefined
}

export async function benchEvidence(report: Report, { data, only, store }: Options): Promise<void> {
  const names = (await readdir(data)).filter(name => name.endsWith('.json')).map(name => name.slice(0, -5))
  const chosen = names.filter(name => only === undefined || only.includes(name)).sort()
  if (chosen.length === 0) throw new Error(`${data} holds no conversation`)
  for (const kind of store === undefined ? ['memory', 'sqlite', 'postgres'] : [store]) {
    const shares = new Map<string, [number, number]>()
    await withStore(kind, async opened => {
      for (const name of chosen) {
        report.progress(`${kind}: ${name} …`)
        const conversation = await readConversation(join(data, `${name}.json`))
        const found = await measure(opened, name, conversation)
        for (const [what, [held, asked]] of found) {
          const key = `${TUNED_ON.has(name) ? 'tuned' : 'other'} ${what}`
          const sum = shares.get(key) ?? [0, 0]
          shares.set(key, [sum[0] + held, sum[1] + asked])
        }
      }
    })
    for (const [what, [held, asked]] of shares) {
      const isTuned = what.startsWith('tuned ')
      const measured = what.replace(/^\w+ /, '')
      const percent = (100 * held) / asked
      const name = `${kind}, ${measured} tokens, ${isTuned ? 'tuned on' : 'not tuned on'}`
      report.share(name, percent, isTuned ? undefined : GOALS[measured])
    }
  }
}

interface Question {
  question: string
  evidence: string[]
}

interface Conversation {
  messages: { id: string; author: string; text: string; time: number; isFirstSpeaker: boolean }[]
  observations: { text: string; time: number; sources: string[] }[]
  questions: Question[]
}

const EVIDENCE = /D\d+:\d+/g

async function readConversation(path: string): Promise<Conversation> {
  const data = JSON.parse(await readFile(path, 'utf8'))
  const conversation: Conversation = { messages: [], observations: [], questions: [] }
  for (let number = 1; data[`session_${number}_date_time`] !== undefined; number++) {
    const start = startOf(data[`session_${number}_date_time`])
    for (const [index, said] of (data[`session_${number}`] ?? []).entries()) {
      const photo = said.blip_caption === undefined ? '' : ` [photo: ${said.blip_caption}]`
      conversation.messages.push({
        id: said.dia_id,
        author: said.speaker,
        text: `${said.text}${photo}`,
        time: start + index * 60_000,
        isFirstSpeaker: said.speaker === data.speaker_a,
      })
    }
    const observed: Record<string, [string, string | string[]][]> =
      data[`session_${number}_observation`] ?? {}
    for (const lines of Object.values(observed))
      for (const [text, sources] of lines)
        conversation.observations.push({
          ...{ text, time: start },
          sources: [sources].flat().flatMap(source => source.match(EVIDENCE) ?? []),
        })
  }
  for (const { question, evidence, category } of data.qa) {
    const sources = (evidence as string[]).flatMap(source => source.match(EVIDENCE) ?? [])
    if (category !== 5 && sources.length > 0) conversation.questions.push({ question, evidence: sources })
  }
  return conversation
}

/** "1:56 pm on 8 May, 2023" */
function startOf(text: string): number {
  const [, hour, minute, half, day] = /^(\d+):(\d+) (am|pm) on (.+)$/.exec(text) ?? []
  const hours = (Number(hour) % 12) + (half === 'pm' ? 12 : 0)
  return Date.parse(`${day} 00:00 UTC`) + (hours * 60 + Number(minute)) * 60_000
}

async function measure(
  store: MemoryCapableStore,
  name: string,
  conversation: Conversation,
): Promise<Map<string, [number, number]>> {
  const shares = new Map<string, [number, number]>()
  const plain = await fill(store, `${name}-plain`, conversation, [])
  const byRules = await fill(store, `${name}-digest`, conversation, digest(plain.messages).map(withTerms))
  const observed = toObserved(conversation, plain.seqs)
  const full = await fill(
    store,
    `${name}-observed`,
    conversation,
    observed.map(({ line }) => line),
  )
  const ids = new Map([...plain.seqs].map(([id, seq]) => [seq, id]))
  const sourcesOf = (place: Place, number: number) =>
    place === full
      ? (observed[number - 1]?.sources ?? [])
      : [ids.get(place.lines[number - 1]?.fromSeq ?? 0) ?? '']
  for (const budget of BUDGETS)
    for (const { question, evidence } of conversation.questions) {
      const count = (what: string, held: ReadonlySet<string>) => {
        const [so, far] = shares.get(`${what} ${budget}`) ?? [0, 0]
        const isHeld = evidence.every(source => held.has(source))
        shares.set(`${what} ${budget}`, [so + (isHeld ? 1 : 0), far + 1])
      }
      count('tail', addTail(new Set(), ids, plain.messages, budget))
      for (const [what, place, kinds] of [
        ['recall', plain, 'messages'],
        ['digest', byRules, 'observations'],
        ['observations', full, 'observations'],
        ['together', full, 'both'],
      ] as const) {
        const only = kinds === 'observations' ? { observationShare: 1 } : {}
        const { found, spent } = await recallWithin(store, place, { words: question, ...only }, budget)
        const held = new Set(found.messages.map(({ seq }) => ids.get(seq) ?? ''))
        for (const { number } of found.observations)
          for (const source of sourcesOf(place, number)) held.add(source)
        count(what, kinds === 'observations' ? held : addTail(held, ids, plain.messages, budget - spent))
      }
    }
  return shares
}

/**
 * What recall finds within a budget by the ruler of this bench. Recall itself counts by Lango's estimate, which is lower
 * for some texts: what exceeds the ruler is asked for again, with as much less.
 */
async function recallWithin(
  store: MemoryCapableStore,
  place: Place,
  query: { words: string; observationShare?: number },
  budget: number,
) {
  for (let budgetTokens = budget; ; ) {
    const found = await recall(store.memory, place.key, { ...query, budgetTokens })
    let spent = 0
    for (const message of found.messages) spent += cost(messageLine(message))
    for (const { time, text } of found.observations) spent += cost(`${dateWords(time)}: ${text}`)
    if (spent <= budget) return { found, spent }
    budgetTokens = Math.floor((budgetTokens * budget) / spent) - 1
  }
}

interface Place {
  key: SessionKey
  messages: StoredMessage[]
  seqs: Map<string, number>
  lines: Observed[]
}

async function fill(
  store: MemoryCapableStore,
  sessionId: string,
  { messages }: Conversation,
  lines: Observed[],
): Promise<Place> {
  const key = { appName: 'bench', userId: 'user', sessionId }
  await store.createSession(key)
  const rows = messages.map(({ author, text, time, isFirstSpeaker }) => ({
    role: isFirstSpeaker ? 'user' : 'assistant',
    ...{ author, content: text, timestamp: time },
  }))
  await store.appendMessages(key, rows)
  await indexSession(store, key)
  for (let start = 0; start < lines.length; start += 100)
    await store.memory.observe(key, { observations: lines.slice(start, start + 100) })
  const stored = await store.readMessages(key, { limit: 10_000 })
  const seqs = new Map(messages.map(({ id }, index) => [id, index + 1]))
  return { key, messages: stored, seqs, lines }
}

/** The observations of the dataset, as an observer would return them. */
function toObserved({ observations }: Conversation, seqs: ReadonlyMap<string, number>) {
  return observations.flatMap(({ text, time, sources }) => {
    const known = sources.flatMap(source => seqs.get(source) ?? [])
    if (known.length === 0) return []
    const line = withTerms({
      ...{ text, time, kind: 'fact', priority: 2, origin: 'dataset' },
      ...{ fromSeq: Math.min(...known), toSeq: Math.max(...known) },
    })
    return [{ line, sources }]
  })
}

/** What the budget has left is filled with the newest messages, as requests are today. */
function addTail(
  held: Set<string>,
  ids: ReadonlyMap<number, string>,
  messages: readonly StoredMessage[],
  budget: number,
): Set<string> {
  let left = budget
  for (const message of messages.toReversed()) {
    const id = ids.get(message.seq) ?? ''
    if (held.has(id)) continue
    left -= cost(messageLine(message))
    if (left < 0) break
    held.add(id)
  }
  return held
}

function cost(line: string): number {
  return Buffer.byteLength(line) / 4 + 8
}
