import type { RunEventRecord, RunSignal } from '../session/session-store.js'
import { checkInteger, checkName, invalid } from './check-input.js'

export function checkEvents(events: readonly RunEventRecord[]): void {
  if (!Array.isArray(events)) throw invalid('events', 'must be an array', events)
  events.forEach((event: unknown, index) => {
    if (typeof event !== 'object' || event === null)
      throw invalid(`events[${index}]`, 'must be an object', event)
    checkInteger(`events[${index}].seq`, (event as RunEventRecord).seq, 0)
  })
}

export function checkRunRange({ afterSeq, limit }: { afterSeq?: number; limit?: number }): void {
  // -1 asks for all, number 0 included.
  if (afterSeq !== undefined) checkInteger('afterSeq', afterSeq, -1)
  if (limit !== undefined) checkInteger('limit', limit, 1)
}

export function checkRecord(step: number, record: Record<string, unknown>): void {
  checkInteger('step', step, 0)
  if (typeof record !== 'object' || record === null) throw invalid('record', 'must be an object', record)
}

export function checkSignal(signal: RunSignal): void {
  const type = (signal as RunSignal | undefined)?.type
  if (type !== 'stop' && type !== 'approval')
    throw invalid('signal.type', "must be 'stop' or 'approval'", type)
}

export function checkObservation(model: string, bytes: number, tokens: number): void {
  checkName('model', model)
  checkInteger('bytes', bytes, 1)
  checkInteger('tokens', tokens, 1)
}
