import { networkOr } from './follow-across-networks.js'
import { Observable } from './state/observable.js'

/** Pauses between attempts to reach a server that does not answer. */
const RETRY_MS = 2000
/** A server that takes longer to say that it is there does not answer. */
const PATIENCE_MS = 10_000

/**
 * Whether the server answers. Every request of the page reports it; after one without an answer the server is asked again
 * until it answers, so that the page recovers without a reload.
 */
export class ServerLink {
  readonly state = new Observable<'open' | 'lost'>('open')

  /** The `fetch` of the page's client. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    try {
      const response = await globalThis.fetch(input, init)
      if (isFromProxy(response)) this.#lost()
      else this.state.set('open')
      return response
    } catch (error) {
      if (!init?.signal?.aborted) this.#lost()
      throw error
    }
  }

  #lost(): void {
    if (this.state.get() === 'lost') return
    this.state.set('lost')
    void this.#askAgain()
  }

  async #askAgain(): Promise<void> {
    const { signal } = new AbortController()
    while (this.state.get() === 'lost') {
      await networkOr(RETRY_MS, signal)
      const asked = { signal: AbortSignal.timeout(PATIENCE_MS) }
      await this.fetch('/api/health', asked).catch(() => {})
    }
  }
}

/** Answers of a proxy whose server is gone. Those of the server itself are JSON and say what is wrong. */
function isFromProxy({ status, headers }: Response): boolean {
  return status >= 502 && status <= 504 && !headers.get('content-type')?.includes('json')
}
