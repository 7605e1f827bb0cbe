/**
 * What the Responses API demands of its items:
 *
 * 1. reasoning that is referred to by id exists, or brings its encrypted content, unaltered and final;
 * 2. reasoning stands directly before what the model said after it, and both keep or lose their ids together;
 * 3. every call has one output after it, every output has its call before it.
 */
import { estimateTokens, type JsonObject, objectOf, textOf } from '../json.js'
import { refuse } from '../openai-chat/words.js'
import { sealOpensFor } from '../seal.js'
import { firstOf, type JudgeContext, type Rule, type Violation } from '../violation.js'
import {
  groupOf,
  isOutput,
  mintItemId,
  openEncryptedContent,
  openItemId,
  readItems,
  typeOf,
} from './items.js'

export const previousExists: Rule = (body, context) => {
  const id = textOf(body.previous_response_id)
  if (id === '' || context.stored.has(id)) return undefined
  return refuse(
    'R-previous',
    `Previous response with id '${id}' not found.`,
    'previous_response_id',
    'previous_response_not_found',
  )
}

/** R5, with status 404. */
export const itemsExist: Rule = (body, context) =>
  firstOf(readItems(body), item => {
    const id = textOf(item.id)
    const type = typeOf(item)
    const needsLookup =
      type === 'item_reference' || (type === 'reasoning' && textOf(item.encrypted_content) === '')
    if (id === '' || !needsLookup || openItemId(id)?.stored === true || isKept(id, context)) return undefined
    // A real vendor has what was stored there.
    if (context.opaque && body.store !== false) return undefined
    return {
      ...refuse(
        'R5',
        `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
        'input',
      ),
      status: 404,
    }
  })

function isKept(id: string, context: JudgeContext): boolean {
  for (const items of context.stored.values()) {
    if (items.some(item => item.id === id)) return true
  }
  return false
}

const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/** R6. */
export const reasoningGenuine: Rule = (body, context) =>
  firstOf(readItems(body), item => {
    const blob = textOf(item.encrypted_content)
    if (typeOf(item) !== 'reasoning' || blob === '') return undefined
    if (context.opaque && BASE64.test(blob)) return undefined
    const claims = openEncryptedContent(blob)
    const early = claims?.stage === 'added' && context.reading === 'strict'
    const isElsewhere = claims !== undefined && !sealOpensFor(context.account, claims)
    if (
      claims === undefined ||
      isElsewhere ||
      early ||
      (claims.maker ?? 'openai-responses') !== context.profile
    ) {
      return unverified(shortened(blob), 'Encrypted content could not be decrypted or parsed.')
    }
    const id = textOf(item.id)
    if (id === '' || claims.id === id) return undefined
    return unverified(`for item ${id}`, 'Encrypted content item_id did not match the target item id.')
  })

function unverified(what: string, reason: string): Violation {
  return refuse(
    'R6',
    `The encrypted content ${what} could not be verified. Reason: ${reason}`,
    null,
    'invalid_encrypted_content',
  )
}

function shortened(blob: string): string {
  return blob.length <= 8 ? blob : `${blob.slice(0, 4)}...${blob.slice(-4)}`
}

/** Each id once. */
export const itemsUnique: Rule = body => {
  const seen = new Set<string>()
  return firstOf(readItems(body), item => {
    const id = textOf(item.id)
    if (id === '' || !seen.has(id)) {
      seen.add(id)
      return undefined
    }
    return refuse(
      'R10',
      `Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`,
      'input',
    )
  })
}

/** R10 too: results could not be told apart. */
export const callsUnique: Rule = body => {
  const seen = new Set<string>()
  return firstOf(readItems(body), item => {
    const id = textOf(item.call_id)
    if (typeOf(item) !== 'function_call' || id === '') return undefined
    if (seen.has(id)) return refuse('R10', `Duplicate 'call_id': ${id}`, 'input')
    seen.add(id)
    return undefined
  })
}

/** R3. Reasoning without an id has been seen to be accepted alone, so only the strict reading minds. */
export const reasoningFollowed: Rule = (body, context) => {
  const items = readItems(body)
  return firstOf(items, (item, index) => {
    if (typeOf(item) !== 'reasoning') return undefined
    const next = items[index + 1]
    const id = textOf(item.id)
    if (id === '' && context.reading === 'lenient') return undefined
    if (next !== undefined && (typeOf(next) === 'reasoning' || follows(item, next))) return undefined
    const name = id || textOf(openEncryptedContent(item.encrypted_content)?.id)
    return refuse(
      'R3',
      `Item '${name}' of type 'reasoning' was provided without its required following item.`,
      'input',
    )
  })
}

/** With an id, reasoning needs its own follower, which must have kept its id too. */
function follows(reasoning: JsonObject, next: JsonObject): boolean {
  if (!isOutput(next)) return false
  if (textOf(reasoning.id) === '') return true
  if (textOf(next.id) === '') return false
  const followed = openItemId(next.id)
  return followed === undefined || followed.group === groupOf(reasoning)
}

/** R4. */
export const reasoningPresent: Rule = (body, context) => {
  const items = readItems(body)
  if (context.opaque) return reasoningLost(body, items)
  const groups = new Set<string | undefined>()
  for (const item of priorItems(body, context)) if (typeOf(item) === 'reasoning') groups.add(groupOf(item))
  return firstOf(items, item => {
    if (typeOf(item) === 'reasoning') groups.add(groupOf(item))
    const identity = openItemId(item.id)
    if (identity === undefined || !identity.reasoned || identity.prefix === 'rs') return undefined
    if (typeOf(item) === 'item_reference' || groups.has(identity.group)) return undefined
    const needed = mintItemId({ ...identity, prefix: 'rs', index: 0 })
    return refuse(
      'R4',
      `Item '${textOf(item.id)}' of type '${typeOf(item)}' was provided without its required 'reasoning' item: '${needed}'.`,
      'input',
    )
  })
}

/**
 * R4 without knowledge of the ids: what a model that always reasons said under an id of its own, without reasoning
 * before it in the same answer, or with a call between.
 */
function reasoningLost(body: JsonObject, items: readonly JsonObject[]): Violation | undefined {
  if (!alwaysReasons(body) || textOf(body.previous_response_id) !== '') return undefined
  let reasoned = false
  let called = false
  return firstOf(items, item => {
    const type = typeOf(item)
    if (type === 'reasoning' || type === 'item_reference') {
      reasoned = true
      called = false
      return undefined
    }
    if (!isOutput(item)) {
      reasoned = false
      called = false
      return undefined
    }
    const isMessage = type === 'message'
    const lost = textOf(item.id) !== '' && (!reasoned || (isMessage && called))
    if (!isMessage) called = true
    if (!lost) return undefined
    return refuse(
      'R4',
      `Item '${textOf(item.id)}' of type '${type}' was provided without its required 'reasoning' item.`,
      'input',
    )
  })
}

/** By the model's name, or because the request asks for it. From gpt-5.1 on, reasoning is off unless it is asked for. */
function alwaysReasons(body: JsonObject): boolean {
  const { effort } = objectOf(body.reasoning)
  if (effort !== undefined && effort !== null) return effort !== 'none' && effort !== 'minimal'
  return /(^|\/)(o\d|gpt-5(?![.\d])|codex)|codex/.test(textOf(body.model))
}

/** R2: outputs whose call is not before them, or has its output already. */
export const outputsHaveCalls: Rule = (body, context) => {
  const open = openCalls(priorItems(body, context))
  return firstOf(readItems(body), item => {
    const id = textOf(item.call_id)
    if (typeOf(item) === 'function_call') open.push(id)
    if (typeOf(item) !== 'function_call_output') return undefined
    const at = open.indexOf(id)
    if (at !== -1) {
      open.splice(at, 1)
      return undefined
    }
    return refuse('R2', `No tool call found for function call output with call_id ${id}.`, 'input')
  })
}

/** R1. */
export const callsHaveOutputs: Rule = (body, context) => {
  const open = openCalls([...priorItems(body, context), ...readItems(body)])
  const first = open[0]
  if (first === undefined) return undefined
  return refuse('R1', `No tool output found for function call ${first}.`, 'input')
}

/** Call ids that are still without an output after these items. */
function openCalls(items: readonly JsonObject[]): string[] {
  const open: string[] = []
  for (const item of items) {
    const id = textOf(item.call_id)
    if (typeOf(item) === 'function_call') open.push(id)
    if (typeOf(item) === 'function_call_output' && open.includes(id)) open.splice(open.indexOf(id), 1)
  }
  return open
}

/** What the conversation already holds when a request continues a stored response. */
function priorItems(body: JsonObject, context: JudgeContext): readonly JsonObject[] {
  const prior = context.stored.get(textOf(body.previous_response_id)) ?? []
  const referred = new Set(
    readItems(body).flatMap(item => (typeOf(item) === 'item_reference' ? [textOf(item.id)] : [])),
  )
  if (referred.size === 0) return prior
  const kept = [...context.stored.values()].flat().filter(item => referred.has(textOf(item.id)))
  return [...prior, ...kept]
}

/** R9. */
export const fitsWindow: Rule = (body, context) =>
  estimateTokens(body) <= context.contextWindow ? undefined : responsesOverflow()

export function responsesOverflow(): Violation {
  return refuse(
    'R9',
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
    'input',
    'context_length_exceeded',
  )
}
