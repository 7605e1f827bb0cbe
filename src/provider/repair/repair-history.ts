/**
 * Makes a history ready to send. Three laws hold, each a property test:
 *
 * 1. Legal: whatever goes in, what comes out satisfies the profile.
 * 2. Still: what is legal already comes out untouched, the same objects in the same list.
 * 3. Honest: every change is a receipt, and nothing that a user or a tool said is lost.
 *
 * The spine is the specification's five steps; what each of them relies on stands before it, and what the
 * wire demands of single parts after it. Nothing is ever written back, so that a session which returns to
 * an earlier model finds its signatures and ids as they were.
 */
import { AgentError, checkArgument } from '../../errors.js'
import type { ProviderMessage, Repair, RepairMode } from '../provider.js'
import { adoptIds } from './adopt-ids.js'
import { closeReasoning } from './close-reasoning.js'
import { closeTail } from './close-tail.js'
import { dropEmpties } from './drop-empties.js'
import { dropForeignReasoning } from './drop-foreign-reasoning.js'
import { dropOrphans } from './drop-orphans.js'
import { findingsOf } from './finding.js'
import { fixArguments } from './fix-arguments.js'
import { limitMedia } from './limit-media.js'
import { mapIds } from './map-ids.js'
import { mapNames, toWireName } from './map-names.js'
import type { LimitsReading } from './media-limits.js'
import { answerResults, mergeRoles } from './merge-roles.js'
import { moveMedia } from './move-media.js'
import { normalizeRoles } from './normalize-roles.js'
import { noteArrivals } from './note-arrivals.js'
import { orderParts } from './order-parts.js'
import { pairCalls } from './pair-calls.js'
import { placeSystem, settleSystem } from './place-system.js'
import { prependUser } from './prepend-user.js'
import { type Profile, resolveProfile } from './profile.js'
import type { Entry, Step, StepContext } from './receipt.js'
import { requireReasoning } from './require-reasoning.js'
import { separateParts } from './separate-parts.js'
import { signCalls } from './sign-calls.js'
import { dropRefused, stripSignatures } from './strip-signatures.js'
import { surveyParts } from './survey-parts.js'
import { translateVendorParts } from './translate-vendor-parts.js'
import { typeMedia } from './type-media.js'
import { wellFormedText } from './well-formed-text.js'
import { wrapResults } from './wrap-results.js'

export interface RepairOptions {
  /**
   * Default `repair`. `strict` throws `history-illegal` for what is broken and still rewrites what every
   * send rewrites (ids, names, signatures, media); `explain` returns the history as it was given.
   */
  readonly mode?: RepairMode
  /** `user`: a user message will follow before the history is sent. Default `none`. */
  readonly next?: 'user' | 'none'
  /** Names of the tools that the request declares, so that `mappedNames` knows them too. */
  readonly toolNames?: readonly string[]
  /**
   * Which reading of disputed limits of media holds. Default `documented`: what some source says is taken is sent.
   * `strict`: what any source says is refused is left out. `none`: media stay as they are, their types too.
   */
  readonly mediaLimits?: LimitsReading | 'none' | undefined
  /** The account that the history will be sent to. Sealed data of another one is left out. */
  readonly account?: string
  /** The model that the history will be sent to. */
  readonly model?: string
}

export interface RepairedHistory {
  /** The very list that was given when nothing had to be changed. */
  messages: ProviderMessage[]
  /** By message of `messages`: the index of the given message that it comes from. */
  readonly places: readonly number[]
  repairs: Repair[]
  /** Stored call id → id on the wire, only where they differ. */
  readonly mappedIds: Readonly<Record<string, string>>
  /** Name on the wire → the tool's own name, only where they differ. */
  readonly mappedNames: Readonly<Record<string, string>>
}

const BEFORE: readonly Step[] = [
  normalizeRoles,
  separateParts,
  wellFormedText,
  surveyParts,
  dropRefused,
  dropForeignReasoning,
  translateVendorParts,
  stripSignatures,
  dropEmpties,
  closeReasoning,
  placeSystem,
  adoptIds,
]

const SPINE: readonly Step[] = [dropOrphans, noteArrivals, mergeRoles, prependUser, pairCalls, mergeRoles]

const AFTER: readonly Step[] = [
  orderParts,
  typeMedia,
  moveMedia,
  answerResults,
  limitMedia,
  fixArguments,
  wrapResults,
  requireReasoning,
  mapIds,
  mapNames,
  settleSystem,
  closeTail,
  signCalls,
]

const STEPS: readonly Step[] = [...BEFORE, ...SPINE, ...AFTER]

/**
 * Repairs a history to the rules of a profile and says what it did. The input is never changed.
 *
 * ```ts
 * import { repairHistory } from 'lango/provider'
 *
 * const call = { type: 'tool-call', id: 'a', name: 'weather', args: {} } as const
 * const { messages, repairs } = repairHistory([{ role: 'assistant', parts: [call] }], 'anthropic-4.6')
 * for (const { detail } of repairs) console.log(detail)
 * ```
 */
export function repairHistory(
  messages: readonly ProviderMessage[],
  profile: string | Profile,
  options: RepairOptions = {},
): RepairedHistory {
  checkArgument(Array.isArray(messages), 'repairHistory', 'needs a list of messages as its first argument')
  const repairs: Repair[] = []
  const context: StepContext = {
    profile: resolveProfile(profile),
    next: options.next ?? 'none',
    mediaLimits: options.mediaLimits ?? 'documented',
    account: options.account,
    model: options.model,
    // Without a prototype: names and ids come from stored histories, and may be `__proto__`.
    mappedIds: Object.create(null) as Record<string, string>,
    mappedNames: Object.create(null) as Record<string, string>,
    memo: {},
    report: repair => repairs.push(repair),
  }
  for (const name of options.toolNames ?? []) noteName(name, context)
  let entries: readonly Entry[] = messages.map((message, at) => ({ message, at }))
  for (const step of STEPS) entries = step(entries, context)
  const { mappedIds, mappedNames } = context
  if (options.mode === 'explain')
    return {
      messages: asGiven(messages),
      places: messages.map((_, at) => at),
      repairs,
      mappedIds: {},
      mappedNames: {},
    }
  if (options.mode === 'strict') refuseBroken(repairs, context.profile)
  return {
    messages: sameOrNew(messages, entries),
    places: entries.map(({ at }) => at),
    repairs,
    mappedIds: { ...mappedIds },
    mappedNames: { ...mappedNames },
  }
}

function noteName(name: string, context: StepContext): void {
  const wireName = toWireName(name, context.profile)
  if (wireName !== name) context.mappedNames[wireName] = name
}

/** Ids, names, signatures and media are rewritten on every send; only what is broken is refused. */
export function refuseBroken(repairs: readonly Repair[], profile: Profile): void {
  const findings = findingsOf(repairs, profile).filter(finding => finding.severity === 'breaks')
  const first = findings[0]
  if (!first) return
  throw new AgentError(
    'history-illegal',
    `${profile.name} would reject the history in ${findings.length} ` +
      `${findings.length === 1 ? 'place' : 'places'}, first in message ${first.at}: ${first.message} Send it with repair mode "repair", or repair the stored session with 'lango doctor --fix'.`,
    { details: { profile: profile.name, findings } },
  )
}

function sameOrNew(messages: readonly ProviderMessage[], entries: readonly Entry[]): ProviderMessage[] {
  const same =
    messages.length === entries.length && entries.every((entry, index) => entry.message === messages[index])
  return same ? asGiven(messages) : entries.map(entry => entry.message)
}

/** The caller may modify its list afterwards; the pipeline never does. */
function asGiven(messages: readonly ProviderMessage[]): ProviderMessage[] {
  return messages as ProviderMessage[]
}
