/**
 * Gateways carry signatures in fields of their own: `reasoning_details` (OpenRouter) and `extra_content` (Google's
 * endpoint with OpenAI's API). Gemini 3 refuses a call without its signature there as everywhere; Claude refuses a
 * signature whose thinking was altered, such as one that was stored in fragments. A call id that is minted here proves
 * which details came with the call.
 */
import { mintThinkingSignature, openThinking } from '../anthropic/signature.js'
import type { AnswerRequest } from '../family.js'
import {
  mintCallSignature,
  mintTextSignature,
  type SignatureState,
  signatureState,
} from '../gemini/signature.js'
import { canonicalJson, isObject, type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { freshNonce, sealOpensFor, shortMac } from '../seal.js'
import { firstOf, type JudgeContext, type Rule } from '../violation.js'
import { refuseAt as refuse } from './hosted-rules.js'
import { type ReadCall, type ReadMessage, readMessages } from './messages.js'

/** The reasoning details of an answer, as the fragments of a stream and whole. */
export interface Details {
  readonly fragments: readonly JsonObject[]
  readonly whole: readonly JsonObject[]
}

/** The details of an answer through OpenRouter; none when the model has neither thought nor called. */
export function mintDetails({ plan, context, summary }: AnswerRequest, ids: readonly string[]): Details {
  const { account } = context
  if (context.profile === 'openrouter-gemini') {
    const format = 'google-gemini-v1'
    const thought =
      plan.thinking === '' ? [] : [{ type: 'reasoning.text', text: plan.thinking, format, index: 0 }]
    const [call] = plan.toolCalls
    const [id = ''] = ids
    const data = call
      ? mintCallSignature({ name: call.name, args: call.args }, account)
      : mintTextSignature(account)
    const sealed = {
      type: 'reasoning.encrypted',
      ...(call ? { id } : {}),
      data,
      format,
      index: thought.length,
    }
    return { fragments: [...thought, sealed], whole: [...thought, sealed] }
  }
  if (context.profile !== 'openrouter' || plan.thinking === '') return { fragments: [], whole: [] }
  const head = { type: 'reasoning.text', format: `${makerOf(summary.model)}-v1`, index: 0 }
  const signature = mintThinkingSignature(plan.thinking, { turn: freshNonce(), index: 0, count: 1, account })
  const middle = Math.ceil(plan.thinking.length / 2)
  const pieces = [plan.thinking.slice(0, middle), plan.thinking.slice(middle)].filter(text => text !== '')
  return {
    fragments: [...pieces.map(text => ({ ...head, text })), { ...head, signature }],
    whole: [{ ...head, text: plan.thinking, signature }],
  }
}

function makerOf(model: string): string {
  return model.split('/')[0] ?? ''
}

/** The `extra_content` of the first call, or of an answer without calls. */
export function mintExtraContent({ plan, context }: AnswerRequest): JsonObject {
  const [call] = plan.toolCalls
  const thought_signature = call
    ? mintCallSignature({ name: call.name, args: call.args }, context.account)
    : mintTextSignature(context.account)
  return { google: { thought_signature } }
}

/** The id of a call that came with details. */
export function mintDetailedId(thinking: string, model: string, account: string | undefined): string {
  const claim = freshNonce(8) + digestOf(thinking) + digestOf(readerOf(model, account))
  return `call_d${claim}${shortMac('openai', claim, 8)}`
}

/** Each account reads its own details, and each maker those that it has made. */
function readerOf(model: string, account = ''): string {
  return `${makerOf(model)} ${account}`
}

function digestOf(text: string): string {
  return shortMac('openai', `details:${text}`, 6)
}

/** X15: not refused, but Claude loses its thoughts when the details of a call do not come back. */
export const detailsReturned: Rule = (body, context) => {
  const reader = digestOf(readerOf(textOf(body.model), context.account))
  const lost = readMessages(body).find(message =>
    message.calls.some(call => {
      const [, claim = '', thinking, owner, proof] =
        /^call_d([0-9a-f]{8}([0-9a-f]{6})([0-9a-f]{6}))([0-9a-f]{8})$/.exec(textOf(call.id)) ?? []
      if (owner !== reader || shortMac('openai', claim, 8) !== proof) return false
      return digestOf(wordsOf(message)) !== thinking
    }),
  )
  if (lost === undefined) return undefined
  const message = `messages[${lost.index}]: the reasoning_details that came with these calls were not sent back as they were.`
  return { code: 'X15', status: 200, message }
}

function wordsOf(message: ReadMessage): string {
  return detailsIn(message)
    .map(detail => textOf(detail.text))
    .join('')
}

function detailsIn({ raw }: ReadMessage): JsonObject[] {
  return listOf(raw.reasoning_details).filter(isObject)
}

/** X16: a signature over other words than its own, or of another account. */
export const detailsGenuine: Rule = (body, context) =>
  firstOf(readMessages(body), message =>
    firstOf(detailsIn(message), ({ type, text, signature }) => {
      if (type !== 'reasoning.text' || context.opaque || !isClaude(body)) return undefined
      const opened = openThinking({ type: 'thinking', thinking: text, signature })
      const isOwn = opened?.unmodified === true && sealOpensFor(context.account, opened)
      if (isOwn) return undefined
      return refuse(
        message,
        'X16',
        `messages.${message.index}.content.0: Invalid \`signature\` in \`thinking\` block`,
      )
    }),
  )

function isClaude({ model }: JsonObject): boolean {
  return textOf(model).startsWith('anthropic/')
}

/** X14: the first call of each step of the current turn brings its encrypted detail. */
export const detailsPresent: Rule = (body, context) =>
  firstOf(stepsOf(body), message => {
    const sealed = detailsIn(message).filter(({ type }) => type === 'reasoning.encrypted')
    const [call] = message.calls
    const ofCall = sealed.filter(({ id }) => id === call?.id)
    const states = ofCall.map(({ data }) => stateOf(data, call, context))
    if (states.some(state => state === 'genuine' || state === 'dummy')) return undefined
    const name = textOf(call?.name)
    return refuse(
      message,
      'X14',
      `Gemini models require OpenRouter reasoning details to be preserved in each request. Please refer to our docs: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks. Upstream error: Function call is missing a thought_signature in functionCall parts: \`default_api:${name}\``,
    )
  })

/** G9 and G10 in the form of Chat Completions. */
export const extraContentSigned: Rule = (body, context) =>
  firstOf(stepsOf(body), message => {
    const [call] = message.calls
    const content = objectOf(call?.raw.extra_content)
    const signature = objectOf(content.google ?? content.vertex).thought_signature
    if (signature === undefined) {
      return refuse(
        message,
        'G9',
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${textOf(call?.name)}\` , position ${message.index + 1}.`,
      )
    }
    const state = stateOf(signature, call, context)
    return state === 'foreign' || state === 'misplaced'
      ? refuse(message, 'G10', 'Corrupted thought signature.')
      : undefined
  })

function stateOf(signature: unknown, call: ReadCall | undefined, context: JudgeContext): SignatureState {
  if (context.opaque) return 'genuine'
  const asked = call && { name: call.name, args: parsed(call.arguments) }
  return signatureState(signature, asked, context.account)
}

function parsed(text: unknown): unknown {
  try {
    return JSON.parse(textOf(text))
  } catch {
    return canonicalJson(text)
  }
}

/** The messages with calls since the user last spoke. */
function stepsOf(body: JsonObject): ReadMessage[] {
  const messages = readMessages(body)
  const turn = messages.findLastIndex(({ role }) => role === 'user')
  return messages.slice(turn + 1).filter(({ calls }) => calls.length > 0)
}
