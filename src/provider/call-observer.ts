import { Scope } from '../base/scope.js'

/** What the wires tell about a call that their events do not contain. */
export interface CallObserver {
  /** A request goes to this address. */
  sentTo(url: URL): void
  /** What the vendor calls its answer, and the model that gave it. */
  answered(facts: { id?: unknown; model?: unknown }): void
}

/** The observer of the call that the current code makes. */
export const callObserver = new Scope<CallObserver>('observer')
