import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  judge,
  mintSignature,
  STRICT_PROFILES,
  type StrictProfile,
  type StrictProvider,
  type StrictStep,
} from '../../src/entries/testing.js'
import { longUnless } from '../support/tiers.js'
import { post, serverPool } from './support.js'

const pool = serverPool()

const KEYS = `contents role parts text functionCall functionResponse name args id response thoughtSignature
  messages content tool_calls tool_call_id function arguments type input call_id output summary
  encrypted_content tool_use tool_result tool_use_id thinking signature data tools system max_tokens model
  functionDeclarations parameters input_schema cache_control image_url source generationConfig toolConfig
  functionCallingConfig stop include tool_choice`.split(/\s+/)
const WORDS = `user model assistant tool system function tool_use tool_result thinking redacted_thinking text
  function_call function_call_output reasoning message item_reference object image_url`.split(/\s+/)

/** JSON that looks like a request without being one. */
const nearly = fc.letrec(tie => ({
  value: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    fc.oneof(fc.constantFrom(...WORDS, '', 'a'), fc.integer(), fc.constant(null), fc.boolean()),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 6, noNullPrototype: true }),
  ),
})).value

/** Runs of each property in `npm test` and in the long tier. */
const RUNS = [
  [60, longUnless(true)],
  [1500, longUnless(false)],
] as const

for (const [numRuns, tier] of RUNS) {
  test.each(STRICT_PROFILES)(
    `the judge of %s answers any JSON without throwing, ${numRuns} cases`,
    tier,
    profile => {
      fc.assert(
        fc.property(nearly, fc.constantFrom('strict' as const, 'lenient' as const), (body, reading) => {
          for (const violation of judge(profile, body, { reading })) {
            expect(violation.message).not.toBe('')
            expect(violation.code).toMatch(/^[BGCRAMX](\d+|-[a-z]+)$/)
          }
        }),
        { numRuns },
      )
    },
  )

  test.each(STRICT_PROFILES)(
    `the lenient judge of %s reports no more than the strict one, ${numRuns} cases`,
    tier,
    profile => {
      fc.assert(
        fc.property(nearly, body => {
          const strict = judge(profile, body)
          const lenient = judge(profile, body, { reading: 'lenient' })
          expect(lenient.length).toBeLessThanOrEqual(strict.length)
        }),
        { numRuns },
      )
    },
  )
}

const args = fc.dictionary(
  fc.constantFrom('city', 'días', 'q'),
  fc.oneof(fc.string(), fc.integer(), fc.boolean()),
  {
    noNullPrototype: true,
  },
)
const calling = fc.record({
  text: fc.constantFrom('', 'let me see', '잠깐만'),
  thinking: fc.constantFrom('', 'hm', 'well, 흠'),
  redactedThinking: fc.boolean(),
  toolCalls: fc.array(fc.record({ name: fc.constantFrom('f', 'g'), args }), { minLength: 1, maxLength: 3 }),
})

interface Wire {
  start: unknown[]
  body(history: unknown[]): Record<string, unknown>
  /** The history after an answer and the results of its calls. */
  next(history: unknown[], answer: never): unknown[]
}

const chat: Wire = {
  start: [{ role: 'user', content: 'go' }],
  body: messages => ({ model: 'm', messages }),
  next(
    history,
    answer: {
      choices: {
        message: {
          content: string
          reasoning_content?: string
          reasoning_details?: unknown
          tool_calls: { id: string }[]
        }
      }[]
    },
  ) {
    const message = answer.choices[0]?.message
    const { tool_calls: calls = [], content } = message ?? {}
    const reasoning =
      message?.reasoning_content === undefined ? {} : { reasoning_content: message.reasoning_content }
    const details =
      message?.reasoning_details === undefined ? {} : { reasoning_details: message.reasoning_details }
    const said = { role: 'assistant', content: content ?? '', tool_calls: calls, ...reasoning, ...details }
    return [...history, said, ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'y' }))]
  },
}

const wires: Record<'gemini' | 'anthropic' | 'converse' | 'responses' | 'chat' | 'deepseek', Wire> = {
  chat: {
    ...chat,
    next: (history, answer) =>
      chat.next(history, answer).map(item => ({ ...(item as object), reasoning_content: undefined })),
  },
  deepseek: {
    ...chat,
    next: (history, answer) =>
      // A model that always thinks has thought something.
      chat.next(history, answer).map(item => ({ reasoning_content: '…', ...(item as object) })),
  },
  gemini: {
    start: [{ role: 'user', parts: [{ text: 'go' }] }],
    body: contents => ({ contents }),
    next(
      history,
      answer: { candidates: { content: { parts: { functionCall?: { id?: string; name: string } }[] } }[] },
    ) {
      const content = answer.candidates[0]?.content
      const results = (content?.parts ?? []).flatMap(({ functionCall: call }) =>
        call === undefined
          ? []
          : [{ functionResponse: { id: call.id, name: call.name, response: { output: 1 } } }],
      )
      return [...history, content, { role: 'user', parts: results }]
    },
  },
  anthropic: {
    start: [{ role: 'user', content: 'go' }],
    body: messages => ({
      model: 'm',
      max_tokens: 100,
      messages,
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
    }),
    next(history, answer: { content: { type: string; id: string }[] }) {
      const calls = answer.content.filter(block => block.type === 'tool_use')
      const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'y' }))
      return [...history, { role: 'assistant', content: answer.content }, { role: 'user', content: results }]
    },
  },
  converse: {
    start: [{ role: 'user', content: [{ text: 'go' }] }],
    body: messages => ({
      messages,
      toolConfig: { tools: [{ toolSpec: { name: 'f', inputSchema: { json: { type: 'object' } } } }] },
    }),
    next(
      history,
      answer: {
        output: { message: { content: { toolUse?: { toolUseId: string }; reasoningContent?: object }[] } }
      },
    ) {
      // Thoughts are not asked for, and some of the models refuse them.
      const content = answer.output.message.content.filter(block => block.reasoningContent === undefined)
      const results = content.flatMap(({ toolUse }) =>
        toolUse ? [{ toolResult: { toolUseId: toolUse.toolUseId, content: [{ text: 'y' }] } }] : [],
      )
      return [...history, { role: 'assistant', content }, { role: 'user', content: results }]
    },
  },
  responses: {
    start: [{ role: 'user', content: 'go' }],
    body: input => ({ model: 'm', input, store: false, include: ['reasoning.encrypted_content'] }),
    next(history, answer: { output: { type: string; call_id: string }[] }) {
      const calls = answer.output.filter(item => item.type === 'function_call')
      const outputs = calls.map(({ call_id: id }) => ({
        type: 'function_call_output',
        call_id: id,
        output: 'y',
      }))
      return [...history, ...answer.output, ...outputs]
    },
  },
}

function wireOf(profile: StrictProfile): Wire {
  if (profile.startsWith('gemini')) return wires.gemini
  if (profile.startsWith('anthropic')) return wires.anthropic
  if (profile.endsWith('-responses')) return wires.responses
  if (profile === 'converse') return wires.converse
  return ECHOING.test(profile) ? wires.deepseek : wires.chat
}

/** Servers that want the reasoning of their answers back. */
const ECHOING = /^(deepseek|kimi|glm|qwen|minimax)/

async function converse(server: StrictProvider, steps: number): Promise<unknown[]> {
  const wire = wireOf(server.profile)
  let history = wire.start
  for (let step = 0; step < steps; step += 1) {
    const { body } = await post(server, wire.body(history))
    history = wire.next(history, body as never)
  }
  return history
}

for (const numRuns of [3, 60]) {
  test.each(STRICT_PROFILES)(
    `%s accepts its own answers when they are sent back unchanged, ${numRuns} cases`,
    longUnless(numRuns === 3),
    async profile => {
      await fc.assert(
        fc.asyncProperty(fc.array(calling, { minLength: 1, maxLength: 3 }), async (steps: StrictStep[]) => {
          const server = await pool.start({ profile, script: steps })
          try {
            const history = await converse(server, steps.length)
            expect(server.violations).toEqual([])
            // Another process of the same vendor takes it as well: nothing is remembered, all is proved.
            const headers = { 'anthropic-version': '2026-10-21' }
            expect(
              judge(profile, JSON.parse(JSON.stringify(wireOf(profile).body(history))), { headers }),
            ).toEqual([])
          } finally {
            await server.close()
          }
        }),
        { numRuns },
      )
    },
  )
}

const minted = {
  gemini: mintSignature('gemini', { name: 'f', args: {} }),
  anthropic: mintSignature('anthropic', { thinking: 'hm' }),
  openai: mintSignature('openai'),
}
const bodies: Record<string, (signature: string) => [StrictProfile, unknown]> = {
  gemini: signature => [
    'gemini-3',
    {
      contents: [
        { role: 'user', parts: [{ text: 'a' }] },
        { role: 'model', parts: [{ functionCall: { name: 'f', args: {} }, thoughtSignature: signature }] },
        { role: 'user', parts: [{ functionResponse: { name: 'f', response: {} } }] },
      ],
    },
  ],
  anthropic: signature => [
    'anthropic-4.6',
    {
      model: 'm',
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'a' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'user', content: 'c' },
      ],
    },
  ],
  openai: signature => [
    'openai-responses',
    {
      model: 'm',
      input: [
        { type: 'reasoning', summary: [], encrypted_content: signature },
        { role: 'assistant', content: 'b' },
      ],
    },
  ],
}

test.each(['gemini', 'anthropic', 'openai'] as const)(
  'a signature of %s is accepted as it is and refused when altered',
  vendor => {
    const signature = minted[vendor]
    expect(judge(...(bodies[vendor]?.(signature) ?? ['gemini-3', {}]))).toEqual([])
    fc.assert(
      fc.property(fc.nat(signature.length - 1), fc.constantFrom('A', 'b', '7', ''), (at, letter) => {
        fc.pre(signature[at] !== letter && signature[at] !== '=')
        const altered = signature.slice(0, at) + letter + signature.slice(at + 1)
        expect(judge(...(bodies[vendor]?.(altered) ?? ['gemini-3', {}]))).not.toEqual([])
      }),
      { numRuns: 200 },
    )
  },
)

test('a signature of one vendor is refused by the others', () => {
  for (const [vendor, signature] of Object.entries(minted)) {
    for (const [judging, body] of Object.entries(bodies)) {
      expect(judge(...body(signature)).length === 0).toBe(vendor === judging)
    }
  }
})
