/** Numbers, times and notices as text. */
import { keyHint, SUGGESTED_KEYS } from '../provider/vendors.js'

/** 12345 as `12,345`. */
export function grouped(number: number): string {
  return String(Math.round(number)).replaceAll(/\B(?=(\d{3})+$)/g, ',')
}

/** A number of tokens as 128K or 1M, in units of 1024 where it is a multiple of it. */
export function compact(number: number): string {
  const thousand = number % 1000 !== 0 && number % 1024 === 0 ? 1024 : 1000
  if (number < thousand) return String(number)
  const [unit, size] = number < thousand * thousand ? ['K', thousand] : ['M', thousand * thousand]
  return `${Number((number / size).toFixed(unit === 'M' ? 2 : 0))}${unit}`
}

/** A number of things: `1 message`, `2 messages`. */
export function count(number: number, thing: string): string {
  return `${grouped(number)} ${thing}${number === 1 ? '' : 's'}`
}

/** How long ago, in one unit. */
export function ago(time: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - time) / 1000))
  for (const [unit, size] of UNITS) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`
  }
  return 'just now'
}

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
] as const

/** A local time, to the second. */
export function localTime(time: number): string {
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return 'at an unknown time'
  const two = (value: number) => String(value).padStart(2, '0')
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** The notice for the demo model. */
export function demoNotice(isChosen: boolean): string {
  const others = `or ${SUGGESTED_KEYS.slice(1).join(', ')}`
  if (isChosen) return 'Using the offline demo model, as requested.'
  return `No API key found; using the offline demo model. Set one: ${keyHint()} (${others})`
}
