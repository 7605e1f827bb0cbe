/**
 * Times of a calendar: five cron fields (minute, hour, day of the month, month, day of the week) on the wall clock of a
 * time zone. A tick is a moment in milliseconds since 1970. When clocks change:
 *
 * - a rule for certain hours keeps its number of ticks: a time that is skipped is moved by the gap (02:30 becomes 03:30),
 *   a time that comes twice counts the first time;
 * - a rule for every hour follows the clock: nothing in the gap, and both times of an hour that comes twice.
 */

export interface Cron {
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  readonly days: ReadonlySet<number>
  readonly months: ReadonlySet<number>
  readonly weekdays: ReadonlySet<number>
  /** Both days are restricted: one of them has to match. */
  readonly eitherDay: boolean
}

/** The rule of a text such as `0 9 * * MON-FRI`, or what is wrong with it. */
export function parseCron(text: string): Cron | { problem: string } {
  const words = text.trim().split(/\s+/)
  if (words.length !== FIELDS.length)
    return { problem: 'must have five fields: minute, hour, day of the month, month, day of the week' }
  const sets: Set<number>[] = []
  for (const [index, field] of FIELDS.entries()) {
    const values = fieldValues(words[index] ?? '', field)
    if (values === undefined) return { problem: `has a ${field.name} that is none: "${words[index]}"` }
    sets.push(values)
  }
  const [minutes, hours, days, months, weekdays] = sets as [Values, Values, Values, Values, Values]
  const cron = { minutes, hours, days, months, weekdays, eitherDay: days.size < 31 && weekdays.size < 7 }
  return hasDay(cron) ? cron : { problem: 'names a day that never comes' }
}

type Values = Set<number>

/** Whether the platform knows the time zone, such as `Europe/Berlin`. */
export function isTimeZone(zone: string): boolean {
  // An offset is no zone: it knows no change of clocks.
  if (!/^[A-Za-z]/.test(zone)) return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zone }) !== undefined
  } catch {
    return false
  }
}

/** The first tick after a moment; `undefined` when there is none for nine years. */
export function nextTick(cron: Cron, zone: string, after: number): number | undefined {
  const first = localDay(zone, after) - DAY_MS
  for (let day = first; day < first + MOST_DAYS * DAY_MS; day += DAY_MS) {
    const tick = ticksOfDay(cron, zone, day).find(moment => moment > after)
    if (tick !== undefined) return tick
  }
  return undefined
}

/** The newest ticks after one moment and up to another, oldest first. */
export function ticksBetween(
  { cron, zone }: { cron: Cron; zone: string },
  after: number,
  upTo: number,
  most: number,
): number[] {
  const found: number[] = []
  const oldest = Math.max(localDay(zone, after) - DAY_MS, localDay(zone, upTo) - MOST_DAYS * DAY_MS)
  for (let day = localDay(zone, upTo) + DAY_MS; day >= oldest && found.length < most; day -= DAY_MS) {
    const ticks = ticksOfDay(cron, zone, day).filter(tick => tick > after && tick <= upTo)
    found.unshift(...ticks.filter(tick => tick !== found[0]))
  }
  return found.slice(-most)
}

const MINUTE_MS = 60_000
const DAY_MS = 1440 * MINUTE_MS
/** Longer than from one 29th of February to the next, over a year that has none. */
const MOST_DAYS = 9 * 366

interface Field {
  readonly name: string
  readonly from: number
  readonly to: number
  readonly names?: readonly string[]
}

const FIELDS: readonly Field[] = [
  { name: 'minute', from: 0, to: 59 },
  { name: 'hour', from: 0, to: 23 },
  { name: 'day of the month', from: 1, to: 31 },
  {
    ...{ name: 'month', from: 1, to: 12 },
    names: ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'],
  },
  // 7 is Sunday as well.
  { name: 'day of the week', from: 0, to: 7, names: ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'] },
]

/** The values of a list such as `1,5-10,*\/15`. */
function fieldValues(text: string, field: Field): Values | undefined {
  const values: Values = new Set()
  for (const entry of text.split(',')) {
    const [, range = '', step] = /^([^/]+)(?:\/(\d{1,2}))?$/.exec(entry) ?? []
    const [first = '', last] = range.split('-')
    const isAll = range === '*'
    const from = isAll ? field.from : numberOf(first, field)
    const end = last === undefined ? (step === undefined ? from : field.to) : numberOf(last, field)
    const to = isAll ? field.to : end
    const by = Number(step ?? 1)
    if (from === undefined || to === undefined || from > to || by < 1 || range.split('-').length > 2)
      return undefined
    for (let value = from; value <= to; value += by) values.add(field.names?.length === 7 ? value % 7 : value)
  }
  return values
}

function numberOf(text: string, { from, to, names = [] }: Field): number | undefined {
  const named = names.indexOf(text.toUpperCase())
  const value = named >= 0 ? named + from : /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN
  return value >= from && value <= to ? value : undefined
}

function hasDay(cron: Cron): boolean {
  // 2024 is a leap year, and any date falls on any weekday some year.
  const anyWeekday = { ...cron, weekdays: new Set([0, 1, 2, 3, 4, 5, 6]), eitherDay: false }
  if (cron.eitherDay) return true
  return Array.from({ length: 366 }, (_, index) => Date.UTC(2024, 0, 1 + index)).some(day =>
    isDay(anyWeekday, new Date(day)),
  )
}

function isDay({ days, months, weekdays, eitherDay }: Cron, date: Date): boolean {
  if (!months.has(date.getUTCMonth() + 1)) return false
  const [isOfMonth, isOfWeek] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())]
  return eitherDay ? isOfMonth || isOfWeek : isOfMonth && isOfWeek
}

/** The ticks of a day of the calendar, in order. `day`: its midnight as if the zone were UTC. */
function ticksOfDay(cron: Cron, zone: string, day: number): number[] {
  if (!isDay(cron, new Date(day))) return []
  // A zone may change its clocks on this day: then each time is looked up.
  const before = offsetAt(zone, day - DAY_MS)
  const isSteady = before === offsetAt(zone, day + 2 * DAY_MS) && before === offsetAt(zone, day + DAY_MS / 2)
  const isEveryHour = cron.hours.size === 24
  const ticks = new Set<number>()
  for (const hour of cron.hours)
    for (const minute of cron.minutes) {
      const wall = day + (hour * 60 + minute) * MINUTE_MS
      if (isSteady) ticks.add(wall - before)
      else for (const tick of momentsOf(zone, wall, isEveryHour)) ticks.add(tick)
    }
  return [...ticks].sort((one, other) => one - other)
}

/** The moments at which clocks show a time. */
function momentsOf(zone: string, wall: number, isEveryHour: boolean): number[] {
  const [before, after] = [offsetAt(zone, wall - DAY_MS), offsetAt(zone, wall + DAY_MS)]
  const possible = [...new Set([wall - before, wall - after])].sort((one, other) => one - other)
  const shown = possible.filter(moment => moment + offsetAt(zone, moment) === wall)
  if (isEveryHour) return shown
  // In a gap: the time by the clock as it was before.
  return [shown[0] ?? wall - before]
}

/** The midnight before a moment, as if the zone were UTC. */
function localDay(zone: string, moment: number): number {
  return Math.floor((moment + offsetAt(zone, moment)) / DAY_MS) * DAY_MS
}

/** How far the clocks of a zone are ahead of UTC. */
function offsetAt(zone: string, moment: number): number {
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(moment)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  const shown = Date.UTC(year, month - 1, day, hour, minute, second)
  return shown - Math.floor(moment / 1000) * 1000
}

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known) return known
  const two = '2-digit'
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone: zone, calendar: 'iso8601', numberingSystem: 'latn', hourCycle: 'h23' },
    ...{ year: 'numeric', month: two, day: two, hour: two, minute: two, second: two },
  })
  formats.set(zone, format)
  return format
}
