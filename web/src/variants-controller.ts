/** The variants of the open chat: which there are, asking a question again as a new one, and choosing one. */
import type { LangoClient } from '../../src/client/client.js'
import type { SessionItem, VariantItem } from './state/api.js'
import { Observable } from './state/observable.js'

export class VariantsController {
  readonly #client: LangoClient
  readonly state = new Observable<readonly VariantItem[]>([])
  /** Only the newest answer counts. */
  #asked = 0

  constructor(client: LangoClient) {
    this.#client = client
  }

  /** Reads the variants of a chat. One that is not stored yet, or cannot be read, has none. */
  async read(sessionId: string | undefined): Promise<void> {
    this.#asked += 1
    const mine = this.#asked
    const nothing = { variants: [] }
    const { variants } =
      sessionId === undefined ? nothing : await this.#client.variants(sessionId).catch(() => nothing)
    if (mine === this.#asked) this.state.set(variants.length > 1 ? variants : [])
  }

  /** Makes a session the listed variant of the chat of another one. */
  show(sessionId: string, of: string): Promise<SessionItem> {
    return this.#client.showVariant(sessionId, of)
  }
}

/** The variants that differ from the open session in the turn of a message, oldest first, itself included. */
export function variantsAt(
  variants: readonly VariantItem[],
  sessionId: string | undefined,
  userSeq: number,
): readonly VariantItem[] {
  const found = variants.filter(
    variant =>
      variant.sessionId === sessionId ||
      (variant.sharedMessages === userSeq - 1 && variant.totalMessages >= userSeq),
  )
  return found.length > 1 ? found : []
}
