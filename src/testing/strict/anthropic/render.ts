/** A message: whole, and as named events. */
import { type Answer, type AnswerPlan, type AnswerRequest, type Frame, splitEvery } from '../family.js'
import type { JsonObject } from '../json.js'
import { freshNonce, freshToken } from '../seal.js'
import { mintRedactedData, mintThinkingSignature } from './signature.js'

interface Block {
  readonly whole: JsonObject
  readonly start: JsonObject
  readonly deltas: readonly JsonObject[]
}

export function renderAnthropic(request: AnswerRequest): Answer {
  const { plan, summary } = request
  const blocks = plan.finish === 'blocked' ? [] : blocksOf(plan)
  const head = { id: `msg_01${freshToken(22)}`, type: 'message', role: 'assistant', model: summary.model }
  const whole = {
    ...head,
    content: blocks.map(block => block.whole),
    stop_sequence: null,
    usage: usageOf(plan),
  }
  return {
    json: { ...whole, stop_reason: stopReason(plan) },
    unfinished: { ...whole, stop_reason: null },
    frames: framesOf(head, blocks, plan),
  }
}

function blocksOf(plan: AnswerPlan): Block[] {
  const turn = freshNonce()
  const count = (plan.thinking === '' ? 0 : 1) + (plan.redactedThinking ? 1 : 0)
  const blocks: Block[] = []
  if (plan.thinking !== '') blocks.push(thinkingBlock(plan.thinking, { turn, index: 0, count }))
  if (plan.redactedThinking) {
    const data = mintRedactedData({ turn, index: blocks.length, count })
    const whole = { type: 'redacted_thinking', data }
    blocks.push({ whole, start: whole, deltas: [] })
  }
  if (plan.text !== '') blocks.push(textBlock(plan))
  for (const call of plan.toolCalls) blocks.push(callBlock(call, plan.finish === 'malformed-call'))
  return blocks
}

function thinkingBlock(thinking: string, place: { turn: string; index: number; count: number }): Block {
  const signature = mintThinkingSignature(thinking, place)
  return {
    whole: { type: 'thinking', thinking, signature },
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...splitEvery(thinking, 16).map(piece => ({ type: 'thinking_delta', thinking: piece })),
      { type: 'signature_delta', signature },
    ],
  }
}

function textBlock(plan: AnswerPlan): Block {
  return {
    whole: { type: 'text', text: plan.text },
    start: { type: 'text', text: '' },
    deltas: plan.deltas.map(text => ({ type: 'text_delta', text })),
  }
}

function callBlock(call: AnswerPlan['toolCalls'][number], broken: boolean): Block {
  const head = { type: 'tool_use', id: call.id ?? `toolu_01${freshToken(22)}`, name: call.name }
  const text = JSON.stringify(call.args)
  const sent = broken ? text.slice(0, Math.max(1, text.length - 2)) : text
  return {
    // A whole message cannot hold half an object.
    whole: { ...head, input: broken ? {} : call.args },
    start: { ...head, input: {} },
    deltas: ['', ...splitEvery(sent, 8)].map(piece => ({ type: 'input_json_delta', partial_json: piece })),
  }
}

function stopReason(plan: AnswerPlan): string {
  switch (plan.finish) {
    case 'stop':
      return 'end_turn'
    case 'tool-calls':
      return 'tool_use'
    case 'blocked':
      return 'refusal'
    default:
      return 'max_tokens'
  }
}

/** Tokens that were read from the cache are not part of `input_tokens`. */
function usageOf({ usage }: AnswerPlan): JsonObject {
  return {
    input_tokens: Math.max(0, usage.input - usage.cached),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cached,
    output_tokens: usage.output,
    service_tier: 'standard',
  }
}

function framesOf(head: JsonObject, blocks: readonly Block[], plan: AnswerPlan): Frame[] {
  const usage = usageOf(plan)
  const begun = {
    ...head,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...usage, output_tokens: 1 },
  }
  const events: JsonObject[] = [{ type: 'message_start', message: begun }]
  blocks.forEach((block, index) => {
    events.push({ type: 'content_block_start', index, content_block: block.start })
    if (index === 0) events.push({ type: 'ping' })
    for (const delta of block.deltas) events.push({ type: 'content_block_delta', index, delta })
    events.push({ type: 'content_block_stop', index })
  })
  const ending: JsonObject[] = [
    {
      type: 'message_delta',
      delta: { stop_reason: stopReason(plan), stop_sequence: null },
      usage,
    },
    { type: 'message_stop' },
  ]
  return [
    ...events.map(event => ({ text: anthropicFrame(event), terminal: false })),
    ...ending.map(event => ({ text: anthropicFrame(event), terminal: true })),
  ]
}

export function anthropicFrame(event: JsonObject): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
