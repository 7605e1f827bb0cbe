import { isRecord } from '../base/is-record.js'
import type { AnswerMetadata } from './stream-event.js'

interface Source {
  url: string
  title?: string | null | undefined
}

/** A search may find hundreds of pages; without citations the first ones stand for them. */
const MOST_FOUND = 20

/**
 * Collects where an answer comes from, in the form of Gemini's grounding metadata: agents, exports and the page read
 * one form for every vendor. Pages that were found but not cited count only when nothing is cited.
 */
export class AnswerSources {
  readonly #cited: Source[] = []
  readonly #found: Source[] = []
  readonly #supports: { segment: { text: string }; groundingChunkIndices: number[] }[] = []
  readonly #queries: string[] = []
  readonly #fetched: { retrievedUrl: string; urlRetrievalStatus: string }[] = []

  /** The answer quotes a page, for this text of it. */
  cite(source: Source, text: string): void {
    const known = this.#cited.findIndex(({ url }) => url === source.url)
    const index = known < 0 ? this.#cited.push(source) - 1 : known
    if (text !== '') this.#supports.push({ segment: { text }, groundingChunkIndices: [index] })
  }

  find(source: Source): void {
    if (!this.#found.some(({ url }) => url === source.url)) this.#found.push(source)
  }

  searched(query: unknown): void {
    if (typeof query === 'string' && query !== '') this.#queries.push(query)
  }

  fetched(url: string, isDone: boolean): void {
    const urlRetrievalStatus = `URL_RETRIEVAL_STATUS_${isDone ? 'SUCCESS' : 'ERROR'}`
    this.#fetched.push({ retrievedUrl: url, urlRetrievalStatus })
  }

  get metadata(): AnswerMetadata {
    const sources = this.#cited.length > 0 ? this.#cited : this.#found.slice(0, MOST_FOUND)
    const grounding = {
      ...(sources.length > 0 ? { groundingChunks: sources.map(toChunk) } : {}),
      ...(this.#supports.length > 0 ? { groundingSupports: this.#supports } : {}),
      ...(this.#queries.length > 0 ? { webSearchQueries: this.#queries } : {}),
    }
    return {
      ...(Object.keys(grounding).length > 0 ? { groundingMetadata: grounding } : {}),
      ...(this.#fetched.length > 0 ? { urlContextMetadata: { urlMetadata: this.#fetched } } : {}),
    }
  }
}

function toChunk({ url, title }: Source) {
  return { web: { uri: url, ...(title ? { title } : {}) } }
}

/** A token as both APIs report it. */
interface LogprobWire {
  token?: string
  logprob?: number
  top_logprobs?: readonly { token?: string; logprob?: number }[] | null
}

/** Collects log probabilities in Gemini's form. */
export class Logprobs {
  readonly #tokens: LogprobWire[] = []

  add(tokens: unknown): void {
    if (Array.isArray(tokens)) for (const token of tokens) if (isRecord(token)) this.#tokens.push(token)
  }

  get metadata(): AnswerMetadata {
    if (this.#tokens.length === 0) return {}
    return {
      logprobsResult: {
        chosenCandidates: this.#tokens.map(toCandidate),
        topCandidates: this.#tokens.map(({ top_logprobs }) => ({
          candidates: (top_logprobs ?? []).map(toCandidate),
        })),
      },
      avgLogprobs: this.#tokens.reduce((sum, { logprob = 0 }) => sum + logprob, 0) / this.#tokens.length,
    }
  }
}

function toCandidate({ token, logprob }: LogprobWire) {
  return { token: token ?? '', logProbability: logprob ?? 0 }
}
