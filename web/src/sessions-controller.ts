/** The list of sessions: pages, search, rename, delete. */
import type { LangoClient } from '../../src/client/client.js'
import type { SessionItem } from './state/api.js'
import { Observable } from './state/observable.js'
import { problemOf } from './state/problem-of.js'
import type { Problem } from './state/thread-state.js'

export interface SessionsState {
  readonly sessions: readonly SessionItem[]
  readonly search: string
  readonly status: 'loading' | 'ready' | 'failed'
  readonly nextCursor?: string | undefined
  readonly problem?: Problem | undefined
}

const PAGE_SIZE = 40

export class SessionsController {
  readonly #client: LangoClient
  readonly state = new Observable<SessionsState>({ sessions: [], search: '', status: 'loading' })
  /** Only the newest answer counts. */
  #asked = 0

  constructor(client: LangoClient) {
    this.#client = client
  }

  search(search: string): void {
    this.#patch({ search })
    void this.refresh()
  }

  /** Reads as many sessions as are shown, from the newest. */
  async refresh(): Promise<void> {
    const { search, sessions } = this.state.get()
    await this.#read(
      { limit: Math.min(Math.max(PAGE_SIZE, sessions.length), 200), ...(search ? { search } : {}) },
      [],
    )
  }

  async loadMore(): Promise<void> {
    const { nextCursor, search, sessions, status } = this.state.get()
    if (nextCursor === undefined || status === 'loading') return
    const query = { limit: PAGE_SIZE, cursor: nextCursor, ...(search ? { search } : {}) }
    await this.#read(query, sessions)
  }

  async rename(sessionId: string, title: string): Promise<void> {
    const { sessions } = this.state.get()
    this.#patch({
      sessions: sessions.map(item => (item.sessionId === sessionId ? { ...item, title } : item)),
    })
    await this.#attempt(() => this.#client.renameSession(sessionId, title))
  }

  async delete(sessionId: string): Promise<boolean> {
    const deleted = await this.#attempt(() => this.#client.deleteSession(sessionId))
    if (deleted) {
      const { sessions } = this.state.get()
      this.#patch({ sessions: sessions.filter(item => item.sessionId !== sessionId) })
    }
    return deleted
  }

  async #read(
    query: { limit: number; cursor?: string; search?: string },
    before: readonly SessionItem[],
  ): Promise<void> {
    this.#asked += 1
    const mine = this.#asked
    this.#patch({ status: 'loading' })
    try {
      const page = await this.#client.sessions(query)
      if (mine !== this.#asked) return
      const known = new Set(before.map(item => item.sessionId))
      const sessions = [...before, ...page.sessions.filter(item => !known.has(item.sessionId))]
      this.#patch({ sessions, status: 'ready', nextCursor: page.nextCursor, problem: undefined })
    } catch (error) {
      if (mine === this.#asked) this.#patch({ status: 'failed', problem: problemOf(error) })
    }
  }

  async #attempt(action: () => Promise<unknown>): Promise<boolean> {
    try {
      await action()
      return true
    } catch (error) {
      this.#patch({ problem: problemOf(error) })
      void this.refresh()
      return false
    }
  }

  #patch(change: Partial<SessionsState>): void {
    this.state.set({ ...this.state.get(), ...change })
  }
}
