/**
 * The verdict over a request body on its own wire. The strict server of the profile decides whether it is refused;
 * what repair would change names the cause and the place. What the server refuses and repair never sees (ids of items,
 * options, fields) is a finding with the server's words alone.
 */
import { isRecord } from '../../base/is-record.js'
import { own } from '../../base/own.js'
import type { Fields, WireMessage } from '../../formats/wire-parts.js'
import { recordsOf, text } from '../../formats/wire-parts.js'
import { type FindingCode, findingText } from '../../provider/repair/finding.js'
import { lintHistory } from '../../provider/repair/lint-history.js'
import type { LimitsReading } from '../../provider/repair/media-limits.js'
import type { Profile, ProfileName } from '../../provider/repair/profile.js'
import { REFUSALS } from '../../provider/repair/refusals.js'
import { judge } from '../../testing/strict/judge.js'
import { PROFILE_FACTS } from '../../testing/strict/profile.js'
import type { Violation } from '../../testing/strict/violation.js'
import type { ProfileLint, SessionFinding } from '../info.js'
import { summarize } from '../lint.js'
import { refusalWords } from './problems.js'

/** A request as it was read. */
export interface RequestBody {
  messages: readonly WireMessage[]
  body: Fields
}

/** Lints a request against a profile of its own wire. */
export function lintRequest(request: RequestBody, profile: Profile): ProfileLint {
  const { messages } = request
  const violations = violationsOf(request.body, profile)
  const found = [...wrongRoles(messages, profile), ...lintHistory(messages, profile, { next: 'none' })]
  const labels = new Set(violations.map(({ code }) => code))
  const unmatched: Violation[] = []
  const said = new Map<string, Violation>()
  for (const violation of violations) {
    if (found.some(finding => labelOf(finding, profile) === violation.code))
      said.set(violation.code, violation)
    else unmatched.push(violation)
  }
  const findings = found.map(finding => {
    const label = labelOf(finding, profile)
    // The shape of a request is checked before its rules.
    const shape = unmatched.find(violation => isAboutMedia(finding, violation))
    if (shape) return broken(finding, profile, shape)
    if (label !== undefined && labels.has(label)) return broken(finding, profile, said.get(label))
    const violation = explained(finding, label, unmatched, profile)
    if (!violation)
      return staysBroken(finding, profile) ? finding : { ...finding, severity: 'mapped' as const }
    unmatched.splice(unmatched.indexOf(violation), 1)
    said.set(violation.code, violation)
    return broken(finding, profile, violation)
  })
  const alone = unmatched.filter(
    violation => !isEcho(violation, said) && !found.some(finding => isAboutMedia(finding, violation)),
  )
  return summarize(profile.name, [
    ...findings,
    ...alone.map(violation => fromViolation(violation, messages, profile)),
    ...disputed(request, profile, violations),
  ])
}

/** What only some sources say is refused: named, but no reason to call the request broken. */
function disputed(
  { messages, body }: RequestBody,
  profile: Profile,
  certain: readonly Violation[],
): SessionFinding[] {
  const known = new Set(certain.map(({ code }) => code))
  return violationsOf(body, profile, 'strict')
    .filter(({ code }) => !known.has(code))
    .map(violation => {
      const { message, ...finding } = fromViolation(violation, messages, profile)
      const repair = 'Sources differ: Lango sends it, and leaves it out once it was refused.'
      return { ...finding, severity: 'mapped' as const, message: `${message} Sources differ.`, repair }
    })
}

/** What the profile's server refuses. Signatures and ids are the vendor's own and cannot be verified here. */
function violationsOf(body: Fields, { name }: Profile, limits: LimitsReading = 'documented'): Violation[] {
  const profile = name as ProfileName
  const isGateway = /\//.test(text(body.model))
  const violations = judge(profile, completed(body, profile), {
    limits,
    opaque: true,
    contextWindow: Number.POSITIVE_INFINITY,
    headers: HEADERS,
  })
  const continues = continuesStored(body)
  return violations.filter(({ code, message }) => {
    if (SILENT.has(code)) return false
    if (continues && KEPT_BY_VENDOR.has(code)) return false
    // A gateway has fields of its own.
    return !(isGateway && /^Unknown parameter: '\w+'/.test(message))
  })
}

/** Whether the vendor has a part of the conversation that the body only names. */
function continuesStored({ previous_response_id: previous, conversation, input }: Fields): boolean {
  return Boolean(previous ?? conversation) || recordsOf(input).some(({ type }) => type === 'item_reference')
}

/** The response that is continued, and the calls in it. */
const KEPT_BY_VENDOR = new Set(['R-previous', 'R2'])

/** The version that takes what all of them take. */
const HEADERS = {
  'anthropic-version': '2023-06-01',
  'anthropic-beta': 'thinking-binding-controls-2026-08-01',
}

/** Not refused: the model only loses the thread. */
const SILENT = new Set(['X12', 'X15', 'G18'])

/** People paste a part of a request: what is missing around the messages is filled in, what an SDK adds is taken out. */
function completed(body: Fields, profile: ProfileName): Fields {
  const { family, model } = PROFILE_FACTS[profile]
  if (family === 'gemini') return completedGemini(body)
  if (family === 'converse') return completedConverse(body)
  if (family !== 'anthropic') return { ...body, model: body.model ?? model }
  const { anthropic_version: _version, anthropic_beta: _beta, ...rest } = body
  const isWhole = rest.max_tokens !== undefined && (rest.model !== undefined || _version !== undefined)
  if (isWhole) return { ...rest, model: rest.model ?? model }
  const tools = rest.tools === undefined ? declaredBy(recordsOf(rest.messages)) : {}
  const budget = isRecord(rest.thinking) ? Number(rest.thinking.budget_tokens ?? 0) : 0
  return { model, max_tokens: budget + 1024, ...rest, ...tools }
}

/** The model is in the path; people paste what an SDK takes. */
function completedConverse({ modelId: _modelId, ...body }: Fields): Fields {
  if (body.inferenceConfig !== undefined || _modelId !== undefined) return body
  const blocks = recordsOf(body.messages).flatMap(({ content }) => recordsOf(content))
  const names = new Set(blocks.flatMap(({ toolUse }) => (isRecord(toolUse) ? [text(toolUse.name)] : [])))
  const hasResults = blocks.some(({ toolResult }) => toolResult !== undefined)
  if (body.toolConfig !== undefined || (names.size === 0 && !hasResults)) return body
  const legal = [...names].filter(name => /^[a-zA-Z0-9_-]{1,64}$/.test(name))
  const tools = (legal.length > 0 ? legal : ['tool']).map(name => ({
    toolSpec: { name, inputSchema: { json: { type: 'object' } } },
  }))
  return { ...body, toolConfig: { tools } }
}

function completedGemini(body: Fields): Fields {
  const { model: _model, config, ...rest } = body
  const { systemInstruction, tools, toolConfig } = isRecord(config) ? config : {}
  const lifted = Object.entries({ systemInstruction, tools, toolConfig }).filter(
    ([, value]) => value !== undefined,
  )
  const contents = recordsOf(rest.contents).map(content => ({ role: 'user', ...content }))
  return { ...Object.fromEntries(lifted), ...rest, contents }
}

/** A declaration for each tool that is called. */
function declaredBy(messages: readonly Fields[]): Fields {
  const blocks = messages.flatMap(({ content }) => recordsOf(content))
  const names = new Set(blocks.flatMap(block => (block.type === 'tool_use' ? [text(block.name)] : [])))
  const results = blocks.some(({ type }) => type === 'tool_result')
  const legal = [...names].filter(name => /^[a-zA-Z0-9_-]{1,64}$/.test(name))
  if (legal.length === 0 && names.size === 0 && !results) return {}
  return {
    tools: (legal.length > 0 ? legal : ['tool']).map(name => ({ name, input_schema: { type: 'object' } })),
  }
}

function wrongRoles(messages: readonly WireMessage[], { name }: Profile): SessionFinding[] {
  return messages.flatMap(({ wrongRole }, at): SessionFinding[] => {
    if (!wrongRole) return []
    const words = refusalWords(name, 'unknown-role')
    const answer = words === undefined ? '' : ` ${name} answers ${words}`
    return [
      {
        code: 'unknown-role',
        severity: 'breaks',
        at,
        message: `The role "${wrongRole.role}" is not valid in this wire format.${answer}`,
        repair: `The role is sent as ${wrongRole.right}.`,
      },
    ]
  })
}

/** The label of the error that the provider answers with: `A1` of `A1: “…”`. */
function labelOf({ code }: Pick<SessionFinding, 'code'>, profile: Profile): string | undefined {
  return /^[A-Z]+\d+/.exec(refusalWords(profile.name, code) ?? '')?.[0]
}

function broken(finding: SessionFinding, profile: Profile, violation: Violation | undefined): SessionFinding {
  if (!violation) return { ...finding, severity: 'breaks' }
  const what = findingText(finding.code as FindingCode)
  return { ...finding, severity: 'breaks', message: `${what} ${answer(violation, profile)}` }
}

/** The error that a finding explains although the table has none, or another one, for it. */
function explained(
  finding: SessionFinding,
  label: string | undefined,
  unmatched: readonly Violation[],
  { name }: Profile,
): Violation | undefined {
  const known = unmatched.find(
    violation =>
      own(ANSWERED_ALSO, violation.code)?.includes(finding.code) || isAboutMedia(finding, violation),
  )
  if (known || label !== undefined || finding.severity !== 'breaks') return known
  return unmatched.find(({ code }) => code.endsWith('-schema') && name !== 'openai-responses')
}

const MEDIA_FINDINGS: ReadonlySet<string> = new Set(['wrong-media-type', 'unreadable-media', 'empty-part'])
const MEDIA_WORDS = /image|inline_?data|media_type|file_data|base64|bytes/i

/** A field of a picture that is not as the API wants it: the type that it says, or the form of its data. */
function isAboutMedia({ code }: SessionFinding, { code: label, message, param }: Violation): boolean {
  return (
    label.endsWith('-schema') && MEDIA_FINDINGS.has(code) && MEDIA_WORDS.test(`${param ?? ''} ${message}`)
  )
}

/** Refused before any rule of the vendor is reached; and only OpenAI's API is known to take arguments that are no JSON. */
function staysBroken({ code }: SessionFinding, { vendor }: Profile): boolean {
  if (code === 'malformed-arguments') return vendor === 'mistral'
  return code === 'ill-formed-text' || code === 'unwritable-value'
}

/** Errors that a vendor has for several faults, of which the table names others. */
const ANSWERED_ALSO: Readonly<Record<string, readonly string[]>> = {
  G17: ['misplaced-part'],
  G11: ['misplaced-part', 'assistant-last'],
  G15: ['no-user-first'],
  G19: ['duplicate-id'],
  G20: ['unnamed-result'],
  X11: ['missing-reasoning'],
  X13: ['unanswered-results', 'id-form', 'repeated-role', 'no-user-first'],
  R10: ['duplicate-id'],
  A13: ['foreign-reasoning'],
  C6: ['empty-message'],
  A43: ['media-limit'],
  A45: ['media-limit'],
  A46: ['media-limit'],
  X32: ['media-limit'],
}

/** The errors of one cause: a call and its result that do not meet are missed from both sides. */
const KINDRED: readonly ReadonlySet<string>[] = [
  new Set(
    'G1 G2 G3 G11 G15 G17 G19 G20 C1 C2 C3 R1 R2 R10 A1 A2 A3 A4 A8 A14 A17 A27 M2 M3 M4 M6 X2 X3 X6 X13'.split(
      ' ',
    ),
  ),
  new Set('R3 R4 R5 R6 A10 A11 A12 A13 A25'.split(' ')),
  new Set('A5 A20 A21 C4 C5 R7 R8 M1 M7 G13 C-schema R-schema A-schema'.split(' ')),
]

function isEcho({ code }: Violation, said: ReadonlyMap<string, Violation>): boolean {
  return KINDRED.some(codes => codes.has(code) && [...said.keys()].some(other => codes.has(other)))
}

function fromViolation(
  violation: Violation,
  messages: readonly WireMessage[],
  profile: Profile,
): SessionFinding {
  const code = codeOf(violation, profile)
  return {
    code,
    severity: 'breaks',
    at: placeOf(violation, messages),
    message: `${findingText(code)} ${answer(violation, profile)}`,
    repair: CURES[code] ?? 'Lango writes this part of the request itself when it sends the history.',
  }
}

function answer({ code, message }: Violation, { name }: Profile): string {
  return `${name} answers ${code}: “${message}”`
}

function codeOf({ code, message }: Violation, profile: Profile): FindingCode {
  const known = own<FindingCode>(CODES_OF_ERRORS, code)
  if (known) return known
  for (const table of [own(REFUSALS, profile.name), own(REFUSALS, profile.vendor)]) {
    for (const [finding, words] of Object.entries(table ?? {})) {
      if (words.startsWith(`${code}:`)) return finding as FindingCode
    }
  }
  return OPTIONS.test(message) ? 'unsupported-option' : 'invalid-request'
}

const OPTIONS = /tool_choice|thinking|temperature|reasoning_effort|max_tokens/

const CODES_OF_ERRORS: Readonly<Record<string, FindingCode>> = {
  R3: 'reasoning-without-follower',
  R4: 'lost-reasoning',
  R5: 'lost-reasoning',
  R7: 'id-form',
  R10: 'duplicate-id',
  A12: 'altered-reasoning',
  A13: 'lost-reasoning',
  A15: 'undeclared-tools',
  A26: 'unsupported-option',
  G20: 'unnamed-result',
  A43: 'media-limit',
  A45: 'media-limit',
  A46: 'media-limit',
  B10: 'document-name',
  B14: 'document-name',
  B23: 'media-limit',
  B24: 'media-limit',
  G32: 'media-limit',
  G33: 'media-limit',
  G34: 'media-limit',
  C22: 'media-limit',
  C23: 'media-limit',
  C24: 'media-limit',
  X32: 'media-limit',
  X33: 'media-limit',
  G35: 'refused-media',
}

const CURES: Readonly<Partial<Record<FindingCode, string>>> = {
  'lost-reasoning':
    'Send the reasoning back in front of what followed it, or leave out the ids of both. Lango keeps reasoning with its answer and sends no item ids.',
  'reasoning-without-follower':
    'Send the item that followed the reasoning back right after it, with its id, or leave out the reasoning. Lango sends both, without ids.',
  'altered-reasoning':
    'Send the last answer back exactly as it came, or without any of its thinking. Lango stores it as it came.',
  'missing-reasoning':
    'Send the reasoning back with the message that it came with. Lango does, and fills in what is missing.',
  'document-name': 'Lango gives each document of a request a plain name of its own.',
  'undeclared-tools': 'Declare the tools that the history uses. Lango declares them in every request.',
  'unsupported-option': 'Leave out the option. Lango leaves it out for this model and says so in a receipt.',
}

/** The message that an error is about, by the path in its words. */
function placeOf({ message, param, place = '' }: Violation, messages: readonly WireMessage[]): number {
  const path = /(messages|contents|input)[.[]+(\d+)/.exec(`${place} ${param ?? ''} ${message}`)
  if (!path) return Math.max(0, messages.length - 1)
  const wanted = Number(path[2])
  const indexOf = (wire: WireMessage) => Number(/\[(\d+)\]/.exec(wire.place)?.[1] ?? -1)
  const at = messages.findLastIndex(each => indexOf(each) <= wanted)
  return Math.max(0, at)
}
