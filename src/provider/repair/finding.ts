/**
 * Receipts, read as what was wrong. Lint and repair run the same steps, so they cannot disagree: whatever a
 * step would change is a finding, and this table says what the provider would have said to it.
 */
import { invariant } from '../../errors.js'
import type { Repair } from '../provider.js'
import type { Profile } from './profile.js'
import { REFUSALS } from './refusals.js'

export interface Finding {
  /** What is wrong, as a code: `call-without-result`, `orphan-result`, … */
  readonly code: FindingCode
  /** `mapped`: ids, names, signatures and media that are rewritten on every send. `breaks`: a refusal. */
  readonly severity: 'breaks' | 'mapped'
  /** Index of the message. */
  readonly at: number
  /** What is wrong and how the provider puts it. */
  readonly message: string
  /** What repair does about it. */
  readonly repair: string
}

export type FindingCode = keyof typeof CODES

/** What is wrong, as a sentence, and how severe it is. */
const CODES = {
  'unknown-role': { severity: 'breaks', text: 'The role is not one that a model knows.' },
  'unreadable-part': { severity: 'breaks', text: 'A part is of no known kind or lacks a field.' },
  'misplaced-part': { severity: 'breaks', text: 'Parts of different roles stand in one message.' },
  'ill-formed-text': { severity: 'breaks', text: 'Text holds half a surrogate pair.' },
  'unwritable-value': {
    severity: 'breaks',
    text: 'An argument or result holds what JSON cannot say, or is nested too deeply.',
  },
  'foreign-reasoning': { severity: 'mapped', text: 'Reasoning is not this vendor’s or cannot be verified.' },
  'unbound-reasoning': {
    severity: 'mapped',
    text: 'Reasoning is bound to a history that has changed since.',
  },
  'foreign-part': { severity: 'mapped', text: 'A part means something to another vendor only.' },
  'unpaired-part': {
    severity: 'breaks',
    text: 'A server tool’s question or what it found stands alone.',
  },
  'foreign-signature': { severity: 'mapped', text: 'A signature was made by another vendor.' },
  'refused-seal': { severity: 'mapped', text: 'The provider has refused what is sealed in a part.' },
  'missing-signature': { severity: 'mapped', text: 'A call of the current turn is not signed.' },
  'missing-reasoning': { severity: 'mapped', text: 'A call comes without reasoning.' },
  'empty-part': { severity: 'breaks', text: 'A part is empty.' },
  'empty-message': { severity: 'breaks', text: 'A message is empty.' },
  'reasoning-without-follower': { severity: 'breaks', text: 'Reasoning leads to nothing.' },
  'misplaced-system': { severity: 'breaks', text: 'A system message stands inside the history.' },
  'several-system': { severity: 'breaks', text: 'Several system messages lead the history.' },
  'lost-result-id': { severity: 'breaks', text: 'A result does not name the id of its call.' },
  'orphan-result': { severity: 'breaks', text: 'A result has no call.' },
  'early-result': { severity: 'breaks', text: 'A result stands before its call.' },
  'late-result': { severity: 'breaks', text: 'A result came after its call had been answered without it.' },
  'duplicate-result': { severity: 'breaks', text: 'A call has several results.' },
  'repeated-role': { severity: 'breaks', text: 'Two messages of one role follow each other.' },
  'unanswered-results': { severity: 'mapped', text: 'The user speaks before results were answered.' },
  'no-user-first': { severity: 'breaks', text: 'The history does not begin with a user message.' },
  'call-without-result': { severity: 'breaks', text: 'A call has no result.' },
  'distant-result': { severity: 'breaks', text: 'A result does not directly follow its call.' },
  'interrupted-call': {
    severity: 'breaks',
    text: 'The user spoke again before the result of a call arrived.',
  },
  'scattered-results': {
    severity: 'breaks',
    text: 'The results of one message’s calls are not one message.',
  },
  'unordered-results': { severity: 'breaks', text: 'Results do not stand in the order of their calls.' },
  'text-after-call': { severity: 'breaks', text: 'Text follows a call.' },
  'misplaced-media': { severity: 'mapped', text: 'Media stand where this model does not take them.' },
  'refused-media': { severity: 'mapped', text: 'Media are of a kind that this model does not take.' },
  'wrong-media-type': {
    severity: 'mapped',
    text: 'Media are of another type than they say, or not plain base64.',
  },
  'unreadable-media': { severity: 'mapped', text: 'Media are empty, or no base64.' },
  'media-limit': { severity: 'mapped', text: 'Media exceed a limit of this model.' },
  'document-name': {
    severity: 'mapped',
    text: 'A document has a name that the API refuses, or two have the same.',
  },
  'malformed-arguments': { severity: 'breaks', text: 'The arguments of a call are not an object.' },
  'unnamed-result': { severity: 'breaks', text: 'A result does not name its tool.' },
  'empty-result': { severity: 'breaks', text: 'A result is empty.' },
  'result-form': { severity: 'breaks', text: 'A result is not an object.' },
  'id-form': { severity: 'mapped', text: 'A call id has a form that this model refuses.' },
  'missing-id': { severity: 'breaks', text: 'A call has no id.' },
  'duplicate-id': { severity: 'breaks', text: 'Two calls share an id.' },
  'name-form': { severity: 'mapped', text: 'A tool name has a form that this model refuses.' },
  'assistant-last': { severity: 'breaks', text: 'The history ends with the assistant.' },
  'trailing-space': { severity: 'breaks', text: 'The last text ends in white space.' },
  'unsupported-option': { severity: 'breaks', text: 'The model does not take an option of the request.' },
  'lost-reasoning': {
    severity: 'breaks',
    text: 'Reasoning that belongs to an answer was left out or stands elsewhere.',
  },
  'altered-reasoning': { severity: 'breaks', text: 'Reasoning of the last answer is not as it came.' },
  'undeclared-tools': { severity: 'breaks', text: 'Tools are used that the request does not declare.' },
  'invalid-request': { severity: 'breaks', text: 'A field of the request is not as the API wants it.' },
} as const satisfies Record<string, { severity: 'breaks' | 'mapped'; text: string }>

const CODE_OF_RECEIPT: Readonly<Record<string, FindingCode>> = {
  'normalize-roles/set-role': 'unknown-role',
  'normalize-roles/rename-role': 'unknown-role',
  'normalize-roles/name-author': 'unknown-role',
  'normalize-roles/drop-part': 'unreadable-part',
  'normalize-roles/mend-part': 'unreadable-part',
  'separate-parts/rename-role': 'misplaced-part',
  'separate-parts/split': 'misplaced-part',
  'well-formed-text/replace-characters': 'ill-formed-text',
  'well-formed-text/write-out': 'unwritable-value',
  'normalize-roles/keep-text': 'unreadable-part',
  'drop-refused/refused-by-provider': 'refused-seal',
  'drop-foreign-reasoning/leave-out': 'foreign-reasoning',
  'drop-foreign-reasoning/prefix-broken': 'unbound-reasoning',
  'translate-vendor-parts/leave-out': 'foreign-part',
  'translate-vendor-parts/translate': 'foreign-part',
  'translate-vendor-parts/unpaired': 'unpaired-part',
  'strip-signatures/leave-out': 'foreign-signature',
  'drop-empties/drop-part': 'empty-part',
  'drop-empties/drop-message': 'empty-message',
  'close-reasoning/leave-out': 'reasoning-without-follower',
  'place-system/rename-role': 'misplaced-system',
  'place-system/merge': 'several-system',
  'adopt-ids/adopt-id': 'lost-result-id',
  'drop-orphans/note': 'orphan-result',
  'drop-orphans/move': 'early-result',
  'drop-orphans/note-late': 'late-result',
  'drop-orphans/note-duplicate': 'duplicate-result',
  'drop-orphans/drop-duplicate': 'duplicate-result',
  'note-arrivals/note': 'interrupted-call',
  'merge-roles/merge': 'repeated-role',
  'answer-results/add': 'unanswered-results',
  'prepend-user/prepend': 'no-user-first',
  'pair-calls/synthesize-result': 'call-without-result',
  'pair-calls/move': 'distant-result',
  'pair-calls/group': 'scattered-results',
  'pair-calls/reorder': 'unordered-results',
  'order-parts/reorder': 'text-after-call',
  'move-media/move': 'misplaced-media',
  'move-media/stub': 'refused-media',
  'type-media/media-retyped': 'wrong-media-type',
  'type-media/media-left-out': 'unreadable-media',
  'limit-media/media-left-out': 'media-limit',
  'limit-media/refused-by-provider': 'refused-media',
  'fix-arguments/rewrite': 'malformed-arguments',
  'wrap-results/name': 'unnamed-result',
  'wrap-results/fill': 'empty-result',
  'wrap-results/wrap': 'result-form',
  'require-reasoning/add': 'missing-reasoning',
  'map-ids/rename-id': 'id-form',
  'map-ids/mint-id': 'missing-id',
  'map-ids/renumber-id': 'duplicate-id',
  'map-names/rename': 'name-form',
  'close-tail/append': 'assistant-last',
  'close-tail/trim': 'trailing-space',
  'sign-calls/stand-in': 'missing-signature',
  'options/leave-out': 'unsupported-option',
  'options/replace': 'unsupported-option',
  'options/option-dropped': 'unsupported-option',
}

/** What is wrong, as a sentence. */
export function findingText(code: FindingCode): string {
  return CODES[code].text
}

/** What the receipts of a repair say about the history that was given: one finding for one cause. */
export function findingsOf(repairs: readonly Repair[], profile: Profile): Finding[] {
  return withoutEchoes(allFindings(repairs, profile))
}

function allFindings(repairs: readonly Repair[], profile: Profile): Finding[] {
  const findings: Finding[] = []
  for (const repair of repairs) {
    const code = CODE_OF_RECEIPT[`${repair.step}/${repair.kind}`]
    invariant(code !== undefined, `The receipt ${repair.step}/${repair.kind} has no finding`)
    const { severity, text } = CODES[code]
    findings.push({
      code,
      severity,
      at: repair.at,
      message: text + refusal(code, profile),
      repair: repair.detail,
    })
  }
  return findings
}

function refusal(code: FindingCode, profile: Profile): string {
  const words = REFUSALS[profile.name]?.[code] ?? REFUSALS[profile.vendor]?.[code]
  return words === undefined ? '' : ` ${profile.name} answers ${words}`
}

/**
 * What follows from another fault in the same message or beside it: results are scattered because one is missing, two
 * messages of one role meet because one between them was empty. The first fault is the cause.
 */
const ECHOES: Readonly<Partial<Record<FindingCode, readonly FindingCode[]>>> = {
  'scattered-results': ['call-without-result', 'duplicate-result', 'orphan-result', 'duplicate-id'],
  'unordered-results': ['call-without-result', 'distant-result', 'scattered-results', 'duplicate-id'],
  'distant-result': [
    'scattered-results',
    'misplaced-part',
    'early-result',
    'misplaced-system',
    'unknown-role',
  ],
  'interrupted-call': ['distant-result', 'scattered-results'],
  'orphan-result': ['call-without-result', 'unknown-role'],
  'call-without-result': ['duplicate-id'],
  'repeated-role': [
    'empty-message',
    'empty-part',
    'misplaced-system',
    'misplaced-part',
    'orphan-result',
    'duplicate-result',
    'unknown-role',
    'unreadable-part',
    'reasoning-without-follower',
  ],
  'assistant-last': ['empty-message', 'empty-part', 'reasoning-without-follower', 'unreadable-part'],
  'empty-message': ['empty-part', 'unreadable-part', 'reasoning-without-follower'],
  'no-user-first': ['empty-message', 'orphan-result', 'unknown-role'],
  'unnamed-result': ['lost-result-id', 'duplicate-id'],
  'name-form': ['unnamed-result'],
}

/** Leaves out findings that another one explains, and says in that one what repair does about them too. */
function withoutEchoes(findings: readonly Finding[]): Finding[] {
  const kept: Finding[] = []
  const echoes: Finding[] = []
  const byPlace = new Map<number, Set<FindingCode>>()
  for (const { code, at } of findings) byPlace.set(at, (byPlace.get(at) ?? new Set()).add(code))
  const explains = (cause: FindingCode, at: number) =>
    [at, at - 1, at + 1].some(place => byPlace.get(place)?.has(cause))
  for (const finding of findings) {
    const causes = ECHOES[finding.code] ?? []
    if (causes.some(cause => explains(cause, finding.at))) echoes.push(finding)
    else kept.push(finding)
  }
  return echoes.length === 0 ? kept : kept.map(finding => withEchoes(finding, echoes))
}

function withEchoes(finding: Finding, echoes: readonly Finding[]): Finding {
  const own = echoes.filter(
    ({ code, at }) => ECHOES[code]?.includes(finding.code) && Math.abs(at - finding.at) <= 1,
  )
  const repairs = [...new Set([finding.repair, ...own.map(({ repair }) => repair)])]
  return own.length === 0 ? finding : { ...finding, repair: repairs.join(' ') }
}
