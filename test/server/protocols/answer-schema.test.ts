// An answer by the client's schema, in both of OpenAI's APIs: checked, corrected once, and an error after that.
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import type { Script } from '../../../src/testing/strict/script.js'
import { startProtocolServer } from './support.js'

const SCHEMA = {
  type: 'object',
  properties: { a: { type: 'number' } },
  required: ['a'],
  additionalProperties: false,
}

/** Answers with what the user's words say, one line for each attempt. */
const dictated: Script = ({ messages, lastUserText }) => {
  const first = messages.find(({ role }) => role === 'user')?.text ?? ''
  const lines = first.split('\n')
  const line = lines[lastUserText.startsWith('[System: The answer') ? 1 : 0] ?? ''
  return { deltas: [line.slice(0, 4), line.slice(4)].map(text => text.replaceAll('¶', '\n')) }
}

interface Asking {
  api: 'chat' | 'responses'
  stream: boolean
}

/** The content of the answer. */
async function ask(
  url: string,
  { api, stream }: Asking,
  words: string,
  schema: object = SCHEMA,
): Promise<string> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 })
  const format = { name: 'place', schema: { ...schema }, strict: !('not' in schema) }
  if (api === 'chat') {
    const request = {
      model: 'lango',
      messages: [{ role: 'user' as const, content: words }],
      response_format: { type: 'json_schema' as const, json_schema: format },
    }
    if (!stream) return (await client.chat.completions.create(request)).choices[0]?.message.content ?? ''
    let text = ''
    for await (const { choices } of await client.chat.completions.create({ ...request, stream }))
      text += choices[0]?.delta.content ?? ''
    return text
  }
  const request = {
    model: 'lango',
    input: words,
    text: { format: { type: 'json_schema' as const, ...format } },
  }
  if (!stream) return (await client.responses.create(request)).output_text
  return (await client.responses.stream(request).finalResponse()).output_text
}

const ASKED: Asking[] = [
  { api: 'chat', stream: false },
  { api: 'chat', stream: true },
  { api: 'responses', stream: false },
  { api: 'responses', stream: true },
]

test.each(ASKED)(
  '$api, stream $stream: an answer that does not satisfy its JSON schema is corrected once',
  async asking => {
    const { url, provider } = await startProtocolServer({ script: dictated })
    expect(await ask(url, asking, 'It is cold.\n{"a":1}')).toBe('{"a":1}')
    expect(provider.requests).toHaveLength(2)
    expect(await ask(url, asking, '```json¶{"a":2}¶```\nnever')).toBe('{"a":2}')
    await expect(ask(url, asking, 'no\nagain no')).rejects.toThrow(
      /does not satisfy .* also after a correction/,
    )
    expect(provider.requests).toHaveLength(5)
    // A schema that is not strict, and that nothing can be checked with, is sent to the model as it is.
    expect(await ask(url, asking, '{"a":3}', { ...SCHEMA, not: { required: ['b'] } })).toBe('{"a":3}')
    expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain('"not"')
    expect(provider.violations).toEqual([])
  },
)

test.each(ASKED)(
  '$api, stream $stream: JSON that lacks a field is corrected, or an error once a part was sent',
  async asking => {
    const { url } = await startProtocolServer({ script: dictated })
    const answer = ask(url, asking, '{"b":1}\n{"a":1}')
    if (asking.stream) await expect(answer).rejects.toThrow('corrected after a part of it was sent')
    else expect(await answer).toBe('{"a":1}')
  },
)

test('a strict answer schema that cannot be checked is refused before anything is stored', async () => {
  const { url, provider } = await startProtocolServer({ script: dictated })
  for (const asking of ASKED) {
    const refused = ask(url, asking, 'x', { type: 'array', items: {} })
    const param = asking.api === 'chat' ? 'response_format' : 'text.format'
    await expect(refused).rejects.toMatchObject({ status: 400, param, code: 'invalid_json_schema' })
  }
  expect(provider.requests).toHaveLength(0)
})
