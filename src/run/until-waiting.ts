/** Following a run that may wait for a person, for callers that must answer before that person does. */
import { orTimeout } from '../base/pause.js'
import type { RunStore } from '../session/run-store.js'
import { questionIn } from './open-questions.js'
import type { RunEvent } from './run-event.js'
import type { EventList } from './run-feed.js'
import type { FollowOptions, RunFollower } from './run-follower.js'

interface FollowedRun {
  follower: RunFollower
  runs: RunStore
  runId: string
}

/** The events of a run to its end, or until it waits for a person. */
export function followRun(
  run: FollowedRun,
  options: FollowOptions,
): AsyncGenerator<EventList, void, undefined> {
  return options.untilWaiting ? untilWaiting(run, options) : run.follower.follow(run.runId, options)
}

/** Ends also when the run waits for a person and all of its events were read. */
async function* untilWaiting(
  { follower, runs, runId }: FollowedRun,
  { signal, afterSeq = 0, untilWaiting: mode }: FollowOptions,
): AsyncGenerator<EventList, void, undefined> {
  const left = new AbortController()
  const both = signal ? AbortSignal.any([signal, left.signal]) : left.signal
  const lists = follower.follow(runId, { afterSeq, signal: both })
  let last = afterSeq
  // A caller that has earlier events may have the question among them.
  let mayWait = afterSeq > 0 && mode !== 'round'
  const isQuestion = mode === 'round' ? isRequest : questionIn
  try {
    for (;;) {
      const next = lists.next()
      let found = mayWait ? await orTimeout(next, LOOK_MS) : await next
      while (found === 'timeout') {
        const run = await runs.findRun(runId)
        if (run?.state === 'waiting' && run.lastSeq <= last) return void next.catch(() => {})
        found = await orTimeout(next, LOOK_MS)
      }
      if (found.done) return
      last = found.value.at(-1)?.seq ?? last
      mayWait ||= found.value.some(isQuestion)
      yield found.value
    }
  } finally {
    left.abort()
  }
}

const LOOK_MS = 250

/** A request of ADK's, or a long-running call: the run waits for the answer between two rounds. */
function isRequest(event: RunEvent): boolean {
  return event.type === 'tool-call' && event.pending === true
}
