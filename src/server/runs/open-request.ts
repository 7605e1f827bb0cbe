import type { RunStore } from '../../session/session-store.js'

const PAGE = 1000
/** Far more than a run has events. */
const MAXIMUM_PAGES = 1000

/** Whether a call of the run waits for somebody's word: it was asked for, and neither answered nor over. */
export async function hasOpenRequest(runs: RunStore, runId: string, callId: string): Promise<boolean> {
  let open = false
  let afterSeq = 0
  for (let page = 0; page < MAXIMUM_PAGES; page++) {
    const events = await runs.readEvents(runId, { afterSeq, limit: PAGE })
    for (const event of events) {
      if (event.type === 'approval-request' && event.id === callId) open = true
      if (event.type === 'approval-answer' && event.id === callId) open = false
      if (event.type === 'run-finish') return false
    }
    if (events.length < PAGE) return open
    afterSeq = events.at(-1)?.seq ?? afterSeq
  }
  return open
}
