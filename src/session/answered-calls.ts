import type { RunEventRecord } from './run-store.js'

/**
 * The calls that events answer, or about which there is nothing more to ask. A question that was aborted may be answered
 * later. A call that failed, or whose outcome is unknown, may have been answered before: its answer is not waited for.
 */
export function answeredCalls(events: readonly RunEventRecord[]): string[] {
  return events.flatMap(({ type, id, answer, given, isError, asks }) => {
    const isAnswered =
      (type === 'approval-answer' && answer !== undefined && answer !== 'aborted') ||
      (type === 'tool-unknown' && (answer !== undefined || asks !== true)) ||
      (type === 'tool-result' && (given === true || isError === true))
    return isAnswered && typeof id === 'string' ? [id] : []
  })
}
