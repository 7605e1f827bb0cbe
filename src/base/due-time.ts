/** A time at which something is due, as callers write it: a `Date`, milliseconds since 1970, or an ISO 8601 text. */
export type DueTime = Date | number | string

/**
 * The time in milliseconds since 1970; `undefined` when it is none. A text needs its offset from UTC: without one it would
 * mean another moment on every machine.
 */
export function readDueTime(value: unknown): number | undefined {
  const ms = value instanceof Date ? value.getTime() : typeof value === 'string' ? readIso(value) : value
  return typeof ms === 'number' && Number.isInteger(ms) && ms >= 0 && ms <= LATEST_MS ? ms : undefined
}

/** How a time is written, for error messages. */
export const DUE_TIME_RULE =
  'a Date, milliseconds since 1970, or a text such as "2027-03-01T09:00:00+01:00" with its offset from UTC'

function readIso(text: string): number | undefined {
  if (!ISO.test(text)) return undefined
  const ms = Date.parse(text)
  // A day that does not exist is moved to the next month by `Date`.
  const [, day = ''] = /^\d{4}-\d{2}-(\d{2})/.exec(text) ?? []
  const written = new Date(`${text.slice(0, 10)}T00:00:00Z`)
  return Number.isNaN(ms) || written.getUTCDate() !== Number(day) ? undefined : ms
}

const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/

/** The end of the year 9999. */
const LATEST_MS = 253_402_300_799_999
