import { createEvent, type Event } from '@google/adk'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { eventToMessage } from '../../src/adk/session/event-to-message.js'
import { messagesToEvents } from '../../src/adk/session/messages-to-events.js'
import { fuzzRestore } from '../fuzz/restore.js'
import { SEED } from '../support/seed.js'
import { longUnless } from '../support/tiers.js'

for (const count of [200, 10_000])
  test(`${count} generated lists of stored messages are restored completely and in order`, {
    ...longUnless(count === 200),
    timeout: 600_000,
  }, async () => {
    const report = await fuzzRestore(count, SEED)
    expect(report.failures).toEqual([])
    expect(report.histories).toBe(count)
  })

const data = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
const signature = fc.option(fc.base64String({ minLength: 4 }), { nil: undefined })
const signed = (part: object, thoughtSignature: string | undefined) =>
  thoughtSignature === undefined ? part : { ...part, thoughtSignature }

/** Parts whose call ids are unique in their event: doubled ones are numbered on purpose. */
const parts = fc
  .array(
    fc.oneof(
      fc.record({ text: fc.string() }),
      fc.tuple(fc.string({ minLength: 1 }), signature).map(([text, sign]) => signed({ text }, sign)),
      fc.tuple(fc.string(), signature).map(([text, sign]) => signed({ text, thought: true }, sign)),
      fc
        .tuple(fc.string({ minLength: 1 }), fc.option(data, { nil: undefined }), signature)
        .map(([name, args, sign]) =>
          signed({ functionCall: { id: '', name, ...(args ? { args } : {}) } }, sign),
        ),
      fc
        .tuple(fc.string({ minLength: 1 }), data)
        .map(([name, response]) => ({ functionResponse: { id: '', name, response } })),
      fc.record({ inlineData: fc.record({ mimeType: fc.constant('image/png'), data: fc.base64String() }) }),
      fc.record({ executableCode: fc.record({ code: fc.string() }) }),
    ),
    { maxLength: 5 },
  )
  .map(list => list.map((part, index) => withId(part, `id-${index}`)))

function withId(part: object, id: string): object {
  if ('functionCall' in part) return { ...part, functionCall: { ...(part.functionCall as object), id } }
  if ('functionResponse' in part)
    return { ...part, functionResponse: { ...(part.functionResponse as object), id } }
  return part
}

const anyEvent = fc
  .record(
    {
      id: fc.string({ minLength: 1 }),
      invocationId: fc.string(),
      author: fc.string({ minLength: 1 }),
      timestamp: fc.integer({ min: 1 }),
      content: fc.record(
        { role: fc.constantFrom('user', 'model', 'function', 'system'), parts },
        { requiredKeys: [] },
      ),
      branch: fc.string(),
      partial: fc.constant(false),
      turnComplete: fc.boolean(),
      errorCode: fc.string(),
      customMetadata: data,
      usageMetadata: fc.record({ promptTokenCount: fc.nat() }),
      longRunningToolIds: fc.array(fc.string(), { maxLength: 2 }),
      actions: fc.record(
        { stateDelta: data, escalate: fc.boolean(), transferToAgent: fc.string() },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: ['id', 'author', 'timestamp'] },
  )
  .map(fields => createEvent(fields as Parameters<typeof createEvent>[0]))

const json = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown

for (const numRuns of [250, 5000])
  test(`${numRuns} generated events are restored from the store unchanged`, {
    ...longUnless(numRuns === 250),
    timeout: 600_000,
  }, () => {
    const restores = (event: Event) => {
      const message = eventToMessage(event)
      if (!message) return
      const [restored] = messagesToEvents([json(message) as typeof message])
      expect(json(restored)).toEqual(json(event))
    }
    fc.assert(fc.property(anyEvent, restores), { numRuns })
  })
