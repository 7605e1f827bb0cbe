/**
 * Clients that know what was acknowledged. A client repeats a request that got no answer, with the same run id, until
 * it is acknowledged; it follows its runs through whichever process responds, and reads on where it was cut off.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunEvent } from '../src/run/run-event.js'
import { comesNext } from './check.js'
import type { Failpoints } from './failpoints.js'
import type { Fleet } from './fleet.js'
import { MODEL_PROFILES, modelOf } from './model.js'
import { type Ask, isRefusedOrder, makeAsk, SERVER_HEADER } from './orders.js'
import type { Random } from './random.js'

/** A message and what its client knows of it. */
export interface Sent extends Ask {
  runId: string
  sessionId: string
  sentAtMs: number
  /** When the first 202 arrived. */
  acknowledgedAtMs?: number
  /** The session was busy and the client had asked not to queue: the message was not accepted. */
  isRefused?: boolean
  isStopRequested?: boolean
  /** The types of the events that were followed, by number. */
  followed: Map<number, string>
  /** What the servers said to the answers to its questions; 0 is none. */
  answered: { id: string; slot: number; atMs: number; status: number }[]
}

/** What a follower reads of an event. */
interface FollowedEvent {
  seq: number
  type: string
  /** Of a tool call. */
  id?: string
  args?: { order?: unknown }
}

export interface ClientOptions {
  fleet: Pick<Fleet, 'address'>
  failpoints: Failpoints
  random: Random
  sessions: number
  /** Whether some payments need an approval. */
  hasPeople: boolean
  /** What the servers of the fleet send as `SERVER_HEADER`. */
  token: string
  /** The process that executes the run of a message, as far as that is known. */
  slotOf(mark: string): number | undefined
  /** Reports an answer that no server may give. */
  wrong(kind: 'not-found' | 'followed', detail: string, runId: string): void
}

/** Two senders for each session, so that messages arrive at the same time through different processes. */
const LANES = 2
const MESSAGES_PER_SESSION = 16
const MOST_UNFINISHED = 4
const POST_MS = 2500
const FOLLOW_MS = 4000
const TIMEOUT_MS = 45_000
/** How long followers may take to read the ends of runs that are stored. */
const ENDINGS_MS = 60_000
/** A person answers at once, or when the run was given up by its process; that takes 2 s. */
const THINKING_MS = { short: [0, 400], long: [2200, 5000] } as const

export class Clients {
  readonly sent: Sent[] = []
  /** Answers besides 200 and 202, by status and code, and the beginning of the first of each. */
  readonly answers = new Map<string, { count: number; example: string }>()
  /** Answers of programs that are no servers of the fleet. */
  strangers = 0
  /** Answers to requests for approval that were acknowledged. */
  approvals = 0
  readonly #options: ClientOptions
  #isOver = false
  #overAt = Number.POSITIVE_INFINITY
  /** Followers answer what their runs wait for, so they stay until all runs have ended, or none goes on. */
  #leaveAt = Number.POSITIVE_INFINITY
  readonly #lanes: Promise<void>[] = []
  readonly #followers = new Set<Promise<void>>()

  constructor(options: ClientOptions) {
    this.#options = options
  }

  start(): void {
    for (let place = 0; place < this.#options.sessions; place++) {
      const random = this.#options.random.stream(`session ${place}`)
      const sessions = new SessionNames(place, random)
      for (let lane = 0; lane < LANES; lane++)
        this.#lanes.push(this.#send(sessions, random.stream(`${lane}`)))
    }
  }

  /** Sends no further message, and waits for answers to those that were sent. */
  async stop(): Promise<void> {
    this.#isOver = true
    this.#overAt = Date.now()
    await Promise.all(this.#lanes)
  }

  /** Waits until the followers have read the end of their runs. */
  async finish(): Promise<void> {
    this.#leaveAt = Date.now() + ENDINGS_MS
    await Promise.all(this.#followers)
  }

  /** One more message to every session: its history must be usable. */
  async sendLast(): Promise<Sent[]> {
    const random = this.#options.random.stream('last')
    const sessionIds = [...new Set(this.sent.filter(isAccepted).map(({ sessionId }) => sessionId))]
    this.#overAt = Date.now()
    this.#leaveAt = Number.POSITIVE_INFINITY
    const last: Sent[] = []
    for (const sessionId of sessionIds) {
      const ask = {
        text: `[message last-${sessionId}] Just say something.`,
        mark: `[message last-${sessionId}]`,
        orders: [],
      }
      const sent = this.#newMessage(sessionId, ask, random)
      await this.#post(sent, random, { whenBusy: 'queue' })
      this.#startFollowing(sent, random)
      last.push(sent)
    }
    return last
  }

  async #send(sessions: SessionNames, random: Random): Promise<void> {
    while (!this.#isOver) {
      await sleep(random.chance(0.2) ? random.between(100, 900) : random.between(0, 60))
      if (sessions.unfinished >= MOST_UNFINISHED) continue
      const { sessionId, token } = sessions.next()
      const sent = this.#newMessage(sessionId, makeAsk(random, token, this.#options.hasPeople), random)
      sessions.unfinished += 1
      await this.#post(sent, random, { whenBusy: random.chance(0.1) ? 'reject' : 'queue' })
      if (!isAccepted(sent)) {
        sessions.unfinished -= 1
        // A request that got no answer may be accepted all the same, after a later copy was refused: its run may ask.
        if (!sent.isRefused) this.#startFollowing(sent, random)
        continue
      }
      if (random.chance(0.04)) await this.#requestStop(sent, random)
      this.#startFollowing(sent, random, () => {
        sessions.unfinished -= 1
      })
    }
  }

  #startFollowing(sent: Sent, random: Random, onEnd: () => void = () => {}): void {
    const following = this.#follow(sent, random).finally(() => {
      onEnd()
      this.#followers.delete(following)
    })
    this.#followers.add(following)
  }

  #newMessage(sessionId: string, ask: Ask, random: Random): Sent {
    const known = { followed: new Map(), answered: [] }
    const sent: Sent = { ...ask, runId: random.uuid(), sessionId, sentAtMs: Date.now(), ...known }
    this.sent.push(sent)
    return sent
  }

  /** Sends the message until it is acknowledged or refused. */
  async #post(sent: Sent, random: Random, { whenBusy }: { whenBusy: 'queue' | 'reject' }): Promise<void> {
    const body = JSON.stringify({
      text: sent.text,
      runId: sent.runId,
      whenBusy,
      model: modelOf(random.pick(MODEL_PROFILES) ?? 'openai-chat'),
    })
    let hasFailed = false
    while (!this.#isTimedOut(TIMEOUT_MS)) {
      const copies = random.chance(0.15) ? 2 : 1
      const answers = await Promise.all(
        Array.from({ length: copies }, () => this.#postOnce(sent, body, random)),
      )
      if (answers.includes(202)) return
      // The refusal of one copy says nothing about another one, or about one whose answer was lost.
      hasFailed ||= answers.some(answer => answer !== 409) || copies > 1
      if (answers.includes(409) && whenBusy === 'reject') {
        if (!hasFailed) sent.isRefused = true
        return
      }
      await sleep(random.between(30, 150))
    }
  }

  async #postOnce(sent: Sent, body: string, random: Random): Promise<number | undefined> {
    const { fleet, failpoints } = this.#options
    const address = fleet.address(random)
    if (!address) {
      await sleep(50)
      return undefined
    }
    void failpoints.reached('post-sent', address.slot)
    const response = await this.#fetch(`${address.url}/api/sessions/${sent.sessionId}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(POST_MS),
    })
    if (response?.status === 202) {
      sent.acknowledgedAtMs ??= Date.now()
      void failpoints.reached('post-accepted', address.slot)
    }
    return response?.status
  }

  /** The answer with its body read; `undefined` when there was none. */
  async #fetch(url: string, init: RequestInit): Promise<{ status: number; text: string } | undefined> {
    try {
      const response = await fetch(url, init)
      const text = await response.text()
      if (this.#isStranger(response)) return undefined
      if (![200, 202, 204].includes(response.status)) this.#note(response.status, text)
      return { status: response.status, text }
    } catch {
      return undefined
    }
  }

  /** A killed server's port may belong to another program: what that answers means nothing. */
  #isStranger({ headers }: Response): boolean {
    const isOwn = headers.get(SERVER_HEADER) === this.#options.token
    if (!isOwn) this.strangers += 1
    return !isOwn
  }

  #note(status: number, text: string): void {
    const code = /"code":\s*"([\w-]+)"/.exec(text)?.[1]
    const name = code === undefined ? String(status) : `${status} ${code}`
    const known = this.answers.get(name) ?? { count: 0, example: text.slice(0, 300) }
    this.answers.set(name, { ...known, count: known.count + 1 })
  }

  async #requestStop(sent: Sent, random: Random): Promise<void> {
    await sleep(random.between(0, 300))
    const address = this.#options.fleet.address(random)
    if (!address) return
    sent.isStopRequested = true
    const signal = AbortSignal.timeout(POST_MS)
    await this.#fetch(`${address.url}/api/runs/${sent.runId}/stop`, { method: 'POST', signal })
  }

  async #follow(sent: Sent, random: Random): Promise<void> {
    const asked = (event: FollowedEvent) => {
      if (event.type === 'approval-request' && event.id !== undefined) void this.#answer(sent, event, random)
    }
    while (Date.now() < this.#leaveAt) {
      if (random.chance(0.2) && isAccepted(sent)) await this.#look(sent, random)
      const address = this.#options.fleet.address(random)
      const isOver = address ? await this.#followOnce(sent, address.url, asked) : false
      if (isOver) return
      await sleep(random.between(20, 200))
    }
  }

  /** Reads the run itself; one that was acknowledged exists. */
  async #look(sent: Sent, random: Random): Promise<void> {
    const address = this.#options.fleet.address(random)
    if (!address) return
    const signal = AbortSignal.timeout(POST_MS)
    const answer = await this.#fetch(`${address.url}/api/runs/${sent.runId}`, { signal })
    if (answer?.status === 404)
      this.#options.wrong('not-found', `GET of an acknowledged run from ${address.slot}: 404`, sent.runId)
  }

  /** A person's answer, sent through any process until one has acknowledged it. */
  async #answer(sent: Sent, { id = '', args }: FollowedEvent, random: Random): Promise<void> {
    const { fleet, failpoints, slotOf } = this.#options
    const order = String(args?.order ?? '')
    const body = JSON.stringify({ answer: isRefusedOrder(order) ? 'no' : 'once' })
    void failpoints.reached('approval-asked', slotOf(sent.mark) ?? 0)
    const thinking = THINKING_MS[random.chance(0.5) ? 'short' : 'long']
    await sleep(random.between(thinking[0], thinking[1]))
    while (Date.now() < this.#leaveAt) {
      const address = fleet.address(random)
      if (address) {
        void failpoints.reached('approval-sent', address.slot)
        const answer = await this.#fetch(`${address.url}/api/runs/${sent.runId}/approvals/${id}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
          signal: AbortSignal.timeout(POST_MS),
        })
        sent.answered.push({ id, slot: address.slot, atMs: Date.now(), status: answer?.status ?? 0 })
        if (answer?.status === 204) {
          this.approvals += 1
          void failpoints.reached('approval-accepted', slotOf(sent.mark) ?? address.slot)
        }
        // 404: it was answered by a request whose acknowledgement was lost, or the run has ended.
        // An acknowledged answer is not repeated: if it is lost, the run does not end.
        if (answer?.status === 204 || answer?.status === 404) return
      }
      await sleep(random.between(50, 200))
    }
  }

  /** `true` when the end of the run was read, or when it was never accepted. */
  async #followOnce(sent: Sent, url: string, asked: (event: FollowedEvent) => void): Promise<boolean> {
    const { runId, followed } = sent
    const after = Math.max(0, ...followed.keys())
    try {
      const response = await fetch(`${url}/api/runs/${runId}/events?after=${after}`, {
        signal: AbortSignal.timeout(FOLLOW_MS),
      })
      if (this.#isStranger(response)) {
        await response.body?.cancel()
        return false
      }
      if (response.status === 204) return true
      if (response.status === 404 && !isAccepted(sent)) {
        await response.body?.cancel()
        return Number.isFinite(this.#leaveAt)
      }
      if (response.status === 404)
        this.#options.wrong('not-found', 'events of an acknowledged run: 404', runId)
      if (response.status !== 200 || !response.body) {
        this.#note(response.status, await response.text())
        return false
      }
      return await this.#readEvents(response.body, { runId, followed, asked })
    } catch {
      return false
    }
  }

  async #readEvents(
    body: ReadableStream<Uint8Array>,
    { runId, followed, asked }: Pick<Sent, 'runId' | 'followed'> & { asked(event: FollowedEvent): void },
  ): Promise<boolean> {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of body) {
      rest += decoder.decode(chunk, { stream: true })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines.filter(each => each.startsWith('data: {"'))) {
        const event = JSON.parse(line.slice('data: '.length)) as RunEvent & FollowedEvent
        const { seq, type } = event
        const last = Math.max(0, ...followed.keys())
        if (!comesNext(event, last))
          this.#options.wrong('followed', `event ${seq} came after event ${last}`, runId)
        followed.set(seq, type)
        asked(event)
        if (type === 'run-finish') return true
      }
    }
    return false
  }

  #isTimedOut(ms: number): boolean {
    return Date.now() > this.#overAt + ms
  }
}

/** Whether the client was promised that the message is kept. */
export function isAccepted({ acknowledgedAtMs }: Sent): boolean {
  return acknowledgedAtMs !== undefined
}

/** The sessions that the senders of one place use, one after another. */
class SessionNames {
  unfinished = 0
  readonly #place: number
  readonly #prefix: string
  #messages = 0

  constructor(place: number, random: Random) {
    this.#place = place
    this.#prefix = random.uuid().slice(0, 8)
  }

  next(): { sessionId: string; token: string } {
    const session = Math.floor(this.#messages / MESSAGES_PER_SESSION)
    this.#messages += 1
    return {
      sessionId: `${this.#prefix}-${this.#place}-${session}`,
      token: `${this.#place}x${session}x${this.#messages}`,
    }
  }
}
