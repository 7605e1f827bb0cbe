// OpenAI's own client: chat completions and the Responses API.
import OpenAI from 'openai'
import { expect } from 'vitest'
import { can } from './support/client-suite.js'
import { type Connect, conversationSuite, openScene, type Turn } from './support/conversation-suite.js'

const PARAMETERS = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'number' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
}

const chat: Connect = ({ baseURL, fetch, weather }) => {
  const client = new OpenAI({ baseURL, apiKey: 'none', fetch })
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: 'system', content: 'Be brief.' }]
  const tools: OpenAI.Chat.ChatCompletionTool[] = [
    { type: 'function', function: { name: 'get_weather', parameters: PARAMETERS, strict: true } },
  ]
  const answer = async (turn: Turn): Promise<OpenAI.Chat.ChatCompletionMessage | undefined> => {
    const request = { model: 'lango', messages, tools }
    const { signal, onPiece } = turn
    if (!onPiece) return (await client.chat.completions.create(request, { signal })).choices[0]?.message
    const stream = client.chat.completions.stream(request, { signal })
    stream.on('content', delta => onPiece(delta))
    return (await stream.finalChatCompletion()).choices[0]?.message
  }
  const say = async (text: string, turn: Turn = {}): Promise<string> => {
    messages.push({ role: 'user', content: text })
    for (;;) {
      const message = await answer(turn).catch(error => {
        messages.pop()
        throw error
      })
      if (!message) return ''
      const { role, content, tool_calls } = message
      messages.push({ role, content, ...(tool_calls ? { tool_calls } : {}) })
      if (!tool_calls?.length) return content ?? ''
      for (const call of tool_calls) {
        if (call.type !== 'function') continue
        const result = weather(JSON.parse(call.function.arguments) as { city: string })
        messages.push({ role: 'tool', tool_call_id: call.id, content: result })
      }
    }
  }
  const structured = async (text: string): Promise<unknown> => {
    const format = { name: 'place', schema: SCHEMA, strict: true }
    const { choices } = await client.chat.completions.create({
      model: 'lango',
      messages: [{ role: 'user', content: text }],
      response_format: { type: 'json_schema', json_schema: format },
    })
    return JSON.parse(choices[0]?.message.content ?? '')
  }
  return { say, structured }
}

const responses: Connect = ({ baseURL, fetch, weather }) => {
  const client = new OpenAI({ baseURL, apiKey: 'none', fetch })
  const tools: OpenAI.Responses.FunctionTool[] = [
    { type: 'function', name: 'get_weather', parameters: PARAMETERS, strict: true },
  ]
  let previous: string | undefined
  const answer = async (input: OpenAI.Responses.ResponseInput, { signal, onPiece }: Turn) => {
    const last = previous === undefined ? {} : { previous_response_id: previous }
    const request = { model: 'lango', instructions: 'Be brief.', input, tools, ...last }
    if (!onPiece) return client.responses.create(request, { signal })
    const stream = client.responses.stream(request, { signal })
    stream.on('response.output_text.delta', ({ delta }) => onPiece(delta))
    return stream.finalResponse()
  }
  const say = async (text: string, turn: Turn = {}): Promise<string> => {
    let input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: text }]
    for (;;) {
      const response = await answer(input, turn)
      previous = response.id
      const calls = response.output.flatMap(item => (item.type === 'function_call' ? [item] : []))
      if (calls.length === 0) return response.output_text
      input = calls.map(({ call_id, arguments: args }) => ({
        type: 'function_call_output',
        call_id,
        output: weather(JSON.parse(args) as { city: string }),
      }))
    }
  }
  const structured = async (text: string): Promise<unknown> => {
    const format = { type: 'json_schema' as const, name: 'place', schema: SCHEMA, strict: true }
    const response = await client.responses.create({ model: 'lango', input: text, text: { format } })
    return JSON.parse(response.output_text)
  }
  return { say, structured }
}

conversationSuite({ client: 'openai (chat completions)', package: 'openai' }, chat)

conversationSuite({ client: 'openai (responses)', package: 'openai' }, responses, store => {
  can('reconnect', 'a background answer is read again from every event: the rest of it, once', async () => {
    const { url } = await openScene({ store, connect: responses })
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none' })
    const request = { model: 'lango', input: 'one', stream: true, background: true } as const
    const live = await eventsOf(await client.responses.create(request))
    const [created] = live
    if (created?.type !== 'response.created') throw new TypeError('The first event is not response.created.')
    const whole = inOnePiece(live)
    expect(textOf(live)).toBe('You said one.')
    const { id } = created.response
    expect(inOnePiece(await eventsOf(await client.responses.retrieve(id, { stream: true })))).toEqual(whole)
    for (const { sequence_number: after } of live) {
      const seen = live.filter(event => event.sequence_number <= after)
      const rest = await client.responses.retrieve(id, { stream: true, starting_after: after })
      expect(inOnePiece([...seen, ...(await eventsOf(rest))]), `after ${after}`).toEqual(whole)
      // The helper reads all of the answer and leaves out the events that its caller has.
      const helper = client.responses.stream({ response_id: id, starting_after: after })
      const emitted = [...seen, ...(await eventsOf(helper))]
      expect(inOnePiece(emitted), `helper after ${after}`).toEqual(whole)
      expect((await helper.finalResponse()).output_text).toBe('You said one.')
    }
  })
})

type ResponseEvent = OpenAI.Responses.ResponseStreamEvent

/** The events of a stream, whose numbers must rise. */
async function eventsOf(stream: AsyncIterable<ResponseEvent>): Promise<ResponseEvent[]> {
  const events: ResponseEvent[] = []
  for await (const event of stream) {
    expect(event.sequence_number).toBeGreaterThan(events.at(-1)?.sequence_number ?? -1)
    events.push(event)
  }
  return events
}

/** Readers get a text in pieces of their own: adjacent deltas of one item are joined, and have the last number. */
function inOnePiece(events: readonly ResponseEvent[]): ResponseEvent[] {
  const all: ResponseEvent[] = []
  for (const event of events) {
    const last = all.at(-1)
    const isNext =
      last?.type === 'response.output_text.delta' &&
      event.type === last.type &&
      event.item_id === last.item_id &&
      event.content_index === last.content_index
    if (isNext) all[all.length - 1] = { ...event, delta: last.delta + event.delta }
    else all.push(event)
  }
  return all
}

function textOf(events: readonly ResponseEvent[]): string {
  return events.map(event => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')
}
