/**
 * What Gemini demands of a conversation:
 *
 * 1. roles are `user` and `model`;
 * 2. it starts with a user turn, and on the newest models does not end with a model turn;
 * 3. calls directly follow a user turn or function responses, responses directly follow calls;
 * 4. a call turn is answered by one content with as many responses as it has calls;
 * 5. on Gemini 3 the first call of each step of the current turn is signed, and no signature is foreign.
 */
import { estimateTokens, textOf } from '../json.js'
import { firstOf, type JudgeContext, type Rule, type Violation } from '../violation.js'
import { type ReadContent, readContents, readDeclarations } from './contents.js'
import { firstPart, refuse } from './shape-rules.js'
import { mintedId, signatureState } from './signature.js'

const G1 =
  'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
const G2 = 'Please ensure that function response turn comes immediately after a function call turn.'
const G3 =
  'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
const NEWEST_ROLES = 'SYSTEM, SYSTEM_1, USER, ASSISTANT, DEVELOPER, CONTEXT, USER_CONTEXT, MODEL, USER.'

/** G4. Older models still take `function` and `system`, which the lenient reading allows. */
export const rolesKnown: Rule = (body, context) => {
  const tolerated =
    context.reading === 'lenient' && context.profile !== 'gemini-3-strict'
      ? ['user', 'model', 'function', 'system', '']
      : ['user', 'model']
  return firstOf(readContents(body), content => {
    if (tolerated.includes(textOf(content.role))) return undefined
    if (context.profile !== 'gemini-3-strict' || content.role === undefined) {
      return refuse('G4', 'Please use a valid role: user, model.')
    }
    const role = textOf(content.role)
    return refuse('G4', `Role '${role}' is not supported. Please use a valid role: ${NEWEST_ROLES}`)
  })
}

/** A conversation that starts with the model's words. A leading call is G1. */
export const startsWithUser: Rule = (body, context) => {
  const first = readContents(body)[0]
  if (first?.role !== 'model' || first.calls.length > 0 || context.reading === 'lenient') return undefined
  return refuse('G15', 'Please ensure that multiturn requests alternate between user and model')
}

/** G1. Consecutive call contents are one call turn. */
export const callsFollowUser: Rule = (body, context) => {
  const contents = readContents(body)
  return firstOf(contents, content => {
    if (content.calls.length === 0) return undefined
    const previous = contents[content.index - 1]
    if (previous === undefined) return refuse('G1', G1)
    if (previous.calls.length > 0 || previous.responses.length > 0 || previous.role !== 'model') return
    return context.reading === 'lenient' ? undefined : refuse('G1', G1)
  })
}

/** G2. A response that follows a response belongs to the same call turn; its count is G3's business. */
export const responsesFollowCalls: Rule = body => {
  const contents = readContents(body)
  return firstOf(contents, content => {
    if (content.responses.length === 0) return undefined
    const previous = contents[content.index - 1]
    const follows = previous !== undefined && (previous.calls.length > 0 || previous.responses.length > 0)
    return follows && content.calls.length === 0 ? undefined : refuse('G2', G2)
  })
}

/** G3. */
export const responsesMatchCalls: Rule = (body, context) => {
  const contents = readContents(body)
  for (let index = 0; index < contents.length; index += 1) {
    const turn = callTurn(contents, index)
    if (turn === undefined) continue
    const answered = answerCount(contents, turn.next, context)
    const pending = turn.next === contents.length
    if (answered !== turn.calls && !(pending && pendingAllowed(context))) return refuse('G3', G3)
    index = turn.next - 1
  }
  return undefined
}

/** G19: two calls of one content under one id. */
const callIdsUnique: Rule = body =>
  firstOf(readContents(body), ({ calls }) => {
    const ids = calls.flatMap(({ call }) => textOf(call?.id) || [])
    return new Set(ids).size < ids.length ? refuse('G19', INVALID_ARGUMENT) : undefined
  })

/** G20: a response that names another function than the call of its id, or one that is not declared. */
const responsesNamedAsCalls: Rule = body => {
  const contents = readContents(body)
  const declared = new Set(readDeclarations(body).map(({ declaration }) => textOf(declaration.name)))
  return firstOf(contents, content => {
    const asked = contents[content.index - 1]?.calls ?? []
    const wrong = content.responses.some(({ response }) => {
      const call = asked.find(one => textOf(one.call?.id) !== '' && one.call?.id === response?.id)?.call
      if (call !== undefined) return call.name !== response?.name
      const name = textOf(response?.name)
      const isCalled = asked.some(one => one.call?.name === name)
      return declared.size > 0 && asked.length > 0 && !isCalled && name !== '' && !declared.has(name)
    })
    return wrong ? refuse('G20', INVALID_ARGUMENT) : undefined
  })
}

/** G19 and G20, which the API does not explain. */
export const idsAndNames: Rule = (body, context) =>
  callIdsUnique(body, context) ?? responsesNamedAsCalls(body, context)

const INVALID_ARGUMENT = 'Request contains an invalid argument.'

/** A call turn from this content on: consecutive contents with calls. */
function callTurn(
  contents: readonly ReadContent[],
  from: number,
): { calls: number; next: number } | undefined {
  let calls = 0
  let next = from
  for (; next < contents.length; next += 1) {
    const count = contents[next]?.calls.length ?? 0
    if (count === 0) break
    calls += count
  }
  return calls === 0 ? undefined : { calls, next }
}

/** How many responses answer a call turn: those of the next content, or of all that follow directly. */
function answerCount(contents: readonly ReadContent[], from: number, context: JudgeContext): number {
  let count = contents[from]?.responses.length ?? 0
  if (context.reading === 'strict') {
    const split = count > 0 && (contents[from + 1]?.responses.length ?? 0) > 0
    return split ? -1 : count
  }
  for (let next = from + 1; (contents[next]?.responses.length ?? 0) > 0; next += 1) {
    count += contents[next]?.responses.length ?? 0
  }
  return count
}

/** A trailing call is G11 on the newest models; older ones may continue from it. */
function pendingAllowed(context: JudgeContext): boolean {
  return context.profile === 'gemini-3-strict' || context.reading === 'lenient'
}

/** G9: calls of the current turn that lack their signature. */
export const callsSigned: Rule = (body, context) => {
  if (context.profile === 'gemini-2') return undefined
  const contents = readContents(body)
  return firstOf(contents.slice(currentTurn(contents)), content => {
    const first = content.calls[0]
    if (first === undefined || (typeof first.signature === 'string' && first.signature !== ''))
      return undefined
    return refuse(
      'G9',
      `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${textOf(first.call?.name)}\` , position ${content.index + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
    )
  })
}

/** The current turn starts at the last user content that is not a function response. */
function currentTurn(contents: readonly ReadContent[]): number {
  for (let index = contents.length - 1; index >= 0; index -= 1) {
    const content = contents[index]
    if (content?.role === 'user' && content.responses.length === 0) return index
  }
  return 0
}

/** G10: signatures of other vendors, altered ones, and ones that were moved to another call. */
export const signaturesGenuine: Rule = (body, context) => {
  const contents = readContents(body)
  const from = context.reading === 'lenient' ? currentTurn(contents) : 0
  return firstPart(body, (content, part) => {
    if (part.signature === undefined || part.signature === null || content.index < from) return undefined
    if (context.opaque && isBase64(part.signature)) return undefined
    const state = signatureState(part.signature, part.call, context.account)
    if (state === 'foreign') return refuse('G10', 'Corrupted thought signature.')
    if (state === 'misplaced' && context.reading === 'strict' && context.profile !== 'gemini-2') {
      return refuse('G10', 'Invalid thought signature.')
    }
    return undefined
  })
}

function isBase64(signature: unknown): boolean {
  return typeof signature === 'string' && /^[A-Za-z0-9+/_-]+={0,2}$/.test(signature)
}

/** G11, newest models only. */
export const endsWithUser: Rule = (body, context) => {
  const last = readContents(body).at(-1)
  if (context.profile !== 'gemini-3-strict' || context.countOnly) return undefined
  if (last?.role === 'model') return refuse('G11', 'Requests ending with a model turn are not supported.')
  return undefined
}

/** Text next to a response: refused by the newest models, answered with nothing by Gemini 3. */
export const responsesAlone: Rule = (body, context) => {
  if (context.profile === 'gemini-2' || context.reading === 'lenient') return undefined
  const mixed = readContents(body).find(
    content =>
      content.responses.length > 0 &&
      content.parts.some(part => typeof part.text === 'string' && part.response === undefined),
  )
  if (mixed === undefined) return undefined
  if (context.profile === 'gemini-3') {
    return { code: 'G17', status: 200, message: 'Text beside a functionResponse: the candidate is empty.' }
  }
  return refuse(
    'G11',
    'Requests ending with a model turn are not supported unless the last part is a function response.',
  )
}

/** Gemini 3 mints an id for each call and answers with nothing when it does not come back. */
export const idsEchoed: Rule = (body, context) => {
  if (context.profile === 'gemini-2' || context.reading === 'lenient') return undefined
  const contents = readContents(body)
  const fault = firstOf(contents, content => {
    const dropped = content.calls.find(part => {
      const minted = mintedId(part.signature)
      return minted !== undefined && part.call?.id !== minted
    })
    if (dropped !== undefined) return `the id of the call ${textOf(dropped.call?.name)} was not sent back`
    const ids = content.calls.flatMap(part => (textOf(part.call?.id) === '' ? [] : [textOf(part.call?.id)]))
    const answers = contents[callTurn(contents, content.index)?.next ?? -1]
    const missing = ids.find(id => !answers?.responses.some(part => part.response?.id === id))
    return missing === undefined || answers === undefined
      ? undefined
      : `no response carries the id ${missing}`
  })
  if (fault === undefined) return undefined
  return { code: 'G18', status: 200, message: `Call ids: ${fault}; the candidate is empty.` }
}

/** G14. */
export const fitsWindow: Rule = (body, context): Violation | undefined => {
  const tokens = estimateTokens(body)
  if (tokens <= context.contextWindow || context.countOnly) return undefined
  return refuse('G14', overflowMessage(tokens, context.contextWindow))
}

export function overflowMessage(tokens: number, window: number): string {
  return `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${window}).`
}
