// A session with a tool through each SDK that is installed, against strict servers; and its spans.
import { createServer } from 'node:http'
import { createRuntime, defineTool } from 'lango'
import { startStrictProvider } from 'lango/testing'

const PROVIDERS = [
  ['openai-chat', 'gpt-4.1', { type: 'openai', api: 'chat' }],
  ['openai-responses', 'gpt-5.6', { type: 'openai' }],
  ['anthropic-4.6', 'claude-sonnet-4-6', { type: 'anthropic' }],
  ['converse', 'us.amazon.nova-pro-v1:0', { type: 'bedrock', region: 'us-east-1' }],
]

const spans = []
const collector = createServer((request, response) => {
  let body = ''
  request.on('data', chunk => {
    body += chunk
  })
  request.on('end', () => {
    if (request.url?.endsWith('/v1/traces')) spans.push(...namesIn(JSON.parse(body)))
    response.setHeader('content-type', 'application/json').end('{}')
  })
})
await new Promise(resolve => collector.listen(0, '127.0.0.1', resolve))

for (const [profile, model, options] of PROVIDERS) {
  const script = (_request, index) =>
    index === 0 ? { toolCalls: [{ name: 'look', args: {} }] } : { text: 'It is there.' }
  const server = await startStrictProvider({ profile, script })
  let calls = 0
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    effect: 'read',
    parameters: { type: 'object', properties: {} },
    execute: () => {
      calls += 1
      return { found: true }
    },
  })
  const runtime = await createRuntime({
    store: 'memory:',
    providers: { strict: { ...options, baseUrl: server.baseUrl, apiKey: 'none' } },
    agent: { model: `strict/${model}`, instruction: 'Be brief.', tools: [look] },
    telemetry: { endpoint: `http://127.0.0.1:${collector.address().port}` },
  })
  const { text, finishReason } = await runtime.runAndCollect({ sessionId: profile, text: 'Where is it?' })
  await runtime.close()
  await server.close()
  const outcome = { text, finishReason, calls, violations: server.violations.length }
  const expected = { text: 'It is there.', finishReason: 'stop', calls: 1, violations: 0 }
  if (JSON.stringify(outcome) !== JSON.stringify(expected))
    throw new Error(`${profile}: ${JSON.stringify(outcome)}`)
  if (!spans.includes(`chat ${model}`))
    throw new Error(`${profile}: no span arrived, only ${spans.join(', ')}`)
}
collector.close()

function namesIn({ resourceSpans }) {
  return resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(scope => scope.spans.map(({ name }) => name)),
  )
}
