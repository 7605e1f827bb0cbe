/**
 * Which media of a request are left out, so that it keeps the limits of its profile. Media are taken in the order in
 * which they stand, and whenever one of them exceeds a limit the oldest are left out. What is decided about the beginning
 * of a history therefore depends on that beginning alone: a history that grows never changes it, and what was left out
 * stays out.
 */
import { readMediaHeader } from '../../base/media-header.js'
import type { LeftOut, MediaPart, ProviderMessage } from '../provider.js'
import { type LimitsReading, type MediaKind, type MediaLimit, mostOf } from './media-limits.js'
import type { MediaRules } from './profile.js'

export interface MediaItem {
  readonly kind: MediaKind | 'other'
  /** Characters of base64. */
  readonly size: number
  /** 0 where it is not known. */
  readonly width: number
  readonly height: number
  /** The index of the message. */
  readonly message: number
}

export interface BrokenLimit {
  /** A clause for people, the same in every request. */
  readonly reason: string
  /** Where the limit is documented. */
  readonly source: string
}

interface Rule {
  readonly limit: MediaLimit
  readonly most: number
}

/** By the index of each item that is left out: the limit that it breaks. */
export function mediaBeyondLimits(
  items: readonly MediaItem[],
  limits: readonly MediaLimit[],
  reading: LimitsReading,
): Map<number, BrokenLimit> {
  const rules = limits.flatMap(limit => {
    const most = mostOf(limit, reading)
    return most === Infinity ? [] : [{ limit, most }]
  })
  const out = new Map<number, BrokenLimit>()
  const kept = new Set<number>()
  const tallies = rules.filter(({ limit }) => limit.above > 0 || limit.per !== 'item').map(newTally)
  for (const [index, item] of items.entries()) {
    const alone = rules.find(rule => isBeyondAlone(item, rule))
    if (alone) {
      out.set(index, broken(alone, item))
      continue
    }
    kept.add(index)
    for (const tally of tallies) count(tally, item, 1)
    for (let found = tallies.find(isExceeded); found; found = tallies.find(isExceeded)) {
      for (const victim of victims(items, kept, found.rule)) {
        const left = items[victim] as MediaItem
        kept.delete(victim)
        for (const tally of tallies) count(tally, left, -1)
        out.set(victim, broken(found.rule, left))
      }
    }
  }
  return out
}

/** How far a limit on several items is used: counted as they come and go, because a history may hold thousands. */
interface Tally {
  readonly rule: Rule
  used: number
  /** Pictures that are too large for a request with many of them. */
  tooLarge: number
  /** The message that is counted, where the limit is one of messages. */
  message: number
}

function newTally(rule: Rule): Tally {
  return { rule, used: 0, tooLarge: 0, message: -1 }
}

function count(tally: Tally, item: MediaItem, sign: 1 | -1): void {
  const { limit, most } = tally.rule
  if (!isOf(item, limit)) return
  if (limit.above > 0) {
    tally.used += sign
    if (measure(item, limit) > most) tally.tooLarge += sign
    return
  }
  if (limit.per === 'message' && item.message !== tally.message) {
    // What an earlier message holds was settled with it.
    if (sign < 0) return
    tally.message = item.message
    tally.used = 0
  }
  tally.used += sign * measure(item, limit)
}

function isExceeded({ rule: { limit, most }, used, tooLarge }: Tally): boolean {
  return limit.above > 0 ? used > limit.above && tooLarge > 0 : used > most
}

/** Whether an item breaks a limit whatever else the request holds. */
function isBeyondAlone(item: MediaItem, { limit, most }: Rule): boolean {
  if (limit.above > 0 || !isOf(item, limit)) return false
  return limit.what !== 'count' && measure(item, limit) > most
}

function isOf(item: MediaItem, { of }: MediaLimit): boolean {
  return of === 'media' || item.kind === of
}

function measure(item: MediaItem, { what }: MediaLimit): number {
  switch (what) {
    case 'size':
    case 'total':
      return item.size
    case 'side':
      return Math.max(item.width, item.height)
    case 'pixels':
      return item.width * item.height
    case 'count':
      return 1
  }
}

/** The items that a limit counts together: those of the request, or of the message that was added to last. */
function concerned(items: readonly MediaItem[], kept: ReadonlySet<number>, limit: MediaLimit): number[] {
  const newest = items[[...kept].at(-1) ?? 0]?.message
  return [...kept].filter(index => {
    const item = items[index] as MediaItem
    return isOf(item, limit) && (limit.per !== 'message' || item.message === newest)
  })
}

/** The pictures that are too large for a request with so many of them. */
function overMany(items: readonly MediaItem[], kept: ReadonlySet<number>, { limit, most }: Rule): number[] {
  const pictures = [...kept].filter(index => items[index]?.kind === 'image')
  if (pictures.length <= limit.above) return []
  return pictures.filter(index => measure(items[index] as MediaItem, limit) > most)
}

/**
 * What is left out for a limit: the oldest. More than one at once where the limit is high, because each time costs the
 * cache of everything after the picture.
 */
function victims(items: readonly MediaItem[], kept: ReadonlySet<number>, rule: Rule): number[] {
  const { limit, most } = rule
  if (limit.above > 0) return largeVictims(items, kept, rule)
  const all = concerned(items, kept, limit)
  if (limit.per === 'message') return all.slice(0, all.length - most)
  if (limit.what !== 'total') return all.slice(0, Math.max(all.length - most, batchOf(most)))
  let rest = sum(all.map(index => measure(items[index] as MediaItem, limit)))
  const chosen: number[] = []
  for (const index of all.slice(0, -1)) {
    if (rest <= most * KEPT_SHARE) break
    rest -= measure(items[index] as MediaItem, limit)
    chosen.push(index)
  }
  return chosen
}

/** Large pictures go before small ones, but those of the newest message go last. */
function largeVictims(items: readonly MediaItem[], kept: ReadonlySet<number>, rule: Rule): number[] {
  const large = overMany(items, kept, rule)
  const newest = items[[...kept].at(-1) ?? 0]?.message
  const isOlder = (index: number) => items[index]?.message !== newest
  const older = large.filter(isOlder)
  if (older.length > 0) return older.slice(0, batchOf(rule.limit.above))
  const pictures = [...kept].filter(index => items[index]?.kind === 'image' && isOlder(index))
  return pictures.length > 0 ? pictures.slice(0, batchOf(rule.limit.above)) : large.slice(0, 1)
}

const KEPT_SHARE = 0.75

function batchOf(most: number): number {
  return Math.max(1, Math.floor(most * (1 - KEPT_SHARE)))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, number) => all + number, 0)
}

function broken({ limit, most }: Rule, item: MediaItem): BrokenLimit {
  const reading = limit.readings.find(candidate => candidate.most === most)
  const source = reading ? `${reading.source}, ${reading.date}` : ''
  return { reason: reasonOf(limit, most, item), source }
}

function reasonOf({ what, of, per, above }: MediaLimit, most: number, item: MediaItem): string {
  const things = of === 'document' ? 'documents' : 'pictures'
  const many = above > 0 ? `in a request with more than ${above} pictures ` : ''
  switch (what) {
    case 'size':
      return `it has ${megabytes(item.size)} in base64, and the model takes at most ${megabytes(most)}`
    case 'side':
      return `it has ${item.width} × ${item.height} pixels, and ${many}the model takes at most ${most} on a side`
    case 'pixels':
      return `it has ${item.width} × ${item.height} pixels, and the model takes at most ${most} in all`
    case 'count':
      return `the model takes at most ${most} ${things} in a ${per}`
    case 'total':
      return `the model takes at most ${megabytes(most)} in a request`
  }
}

function megabytes(characters: number): string {
  return `${Math.round((characters / 1024 / 1024) * 100) / 100} MB`
}

/** What of the messages' media a reading of the rules leaves out: asked for each of them in the order in which they stand. */
export function mediaBeyond(
  messages: readonly ProviderMessage[],
  rules: MediaRules,
  reading: LimitsReading,
): { next(part: MediaPart): LeftOut | undefined } {
  const isOut = (part: MediaPart) =>
    part.leftOut !== undefined || (reading === 'strict' && isUnlisted(part, rules))
  const beyond = mediaBeyondLimits(itemsOf(messages, isOut), rules.limits, reading)
  let at = 0
  return {
    next(part) {
      if (part.leftOut) return undefined
      if (isOut(part))
        return {
          kind: 'media-left-out',
          reason: `the model’s page does not list ${part.mimeType}`,
          source: '',
        }
      const limit = beyond.get(at++)
      return limit && { kind: 'media-left-out', ...limit }
    },
  }
}

function isUnlisted({ mimeType }: MediaPart, { listed }: MediaRules): boolean {
  return listed !== undefined && mimeType.startsWith('image/') && !listed.test(mimeType)
}

/** The media of a message, in the order in which they stand. */
export function mediaOf({ parts }: ProviderMessage): readonly MediaPart[] {
  return parts.flatMap(part => {
    if (part.type === 'media') return [part]
    return part.type === 'tool-result' ? (part.media ?? []) : []
  })
}

/** The media that would be sent, as limits see them. */
function itemsOf(messages: readonly ProviderMessage[], isOut: (part: MediaPart) => boolean): MediaItem[] {
  return messages.flatMap((message, index) =>
    mediaOf(message).flatMap(part => (isOut(part) ? [] : [toItem(part, index)])),
  )
}

function toItem(part: MediaPart, message: number): MediaItem {
  const { mimeType, data = '' } = part
  const kind = mimeType.startsWith('image/') ? 'image' : isDocument(mimeType) ? 'document' : 'other'
  const { width = 0, height = 0 } = kind === 'image' ? (readMediaHeader(data) ?? {}) : {}
  return { kind, size: data.length, width, height, message }
}

function isDocument(mimeType: string): boolean {
  return mimeType === 'application/pdf' || mimeType.startsWith('text/')
}
