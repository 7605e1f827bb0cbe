// Every way in which a configuration can be wrong, and the sentence that says so.
import { expect, test } from 'vitest'
import { configJsonSchema } from '../../src/config/config.js'
import { parseConfig } from '../../src/config/parse-config.js'
import type { ConfigProblem } from '../../src/config/read-data.js'
import { AgentError } from '../../src/errors.js'
import { describeModel } from '../../src/provider/model-catalog.js'
import { createRegistry } from '../../src/provider/provider-registry.js'
import { KEYED_PROVIDERS } from '../../src/provider/vendors.js'
import { BUILT_IN_TOOL_NAMES } from '../../src/tools/tool-names.js'

function problemsOf(input: unknown): string[] {
  try {
    parseConfig(input)
  } catch (error) {
    expect(error).toBeInstanceOf(AgentError)
    const { code, details } = error as AgentError
    expect(code).toBe('invalid-config')
    return (details.problems as ConfigProblem[]).map(({ message }) => message)
  }
  return []
}

const TYPES = 'gemini, openai, anthropic, openai-compatible, azure, bedrock, vertex, demo'
const NAME = 'must start with a letter or underscore, followed by letters, digits, underscores or hyphens'
const ADDRESS = 'must be a URL that starts with http:// or https://'
const ONE_SERVER = 'must have either `command` (a program to start) or `url` (a server to call), not both'

const WRONG: [input: unknown, message: string][] = [
  [7, 'It is 7, but must be an object.'],
  [{ app: 3 }, '`app` is 3, but must be a non-empty text.'],
  [null, 'It is null, but must be an object.'],
  [{ agnet: 'x' }, '`agnet` ("x") is not a known key. Did you mean `agent`?'],
  [{ maxTurns: 3 }, '`maxTurns` (3) is not a known key. Did you mean `limits.maxTurns`?'],
  [
    { log: { zzzzzz: true } },
    '`log.zzzzzz` (true) is not a known key. Known keys here: level, content, file, pretty.',
  ],
  [{ app: '' }, '`app` is "", but must be a non-empty text.'],
  [{ app: 3 }, '`app` is 3, but must be a non-empty text.'],
  [
    { store: 'mysql://root:hunter2@db/x' },
    '`store` is "mysql://root:[hidden]@db/x", but must start with sqlite:, postgres:// or memory:.',
  ],
  [{ agent: 'helper' }, '`agent` is "helper", but must be an object.'],
  [{ agent: { name: 'a b' } }, `\`agent.name\` is "a b", but ${NAME}.`],
  [
    { agent: { name: 'user' } },
    '`agent.name` is "user", but must be another name: "user" is reserved for the person.',
  ],
  [{ agent: { model: '' } }, '`agent.model` is "", but must be a model such as "openai/gpt-5.2".'],
  [{ agent: { instruction: 4 } }, '`agent.instruction` is 4, but must be a text.'],
  [{ agent: { templating: 'yes' } }, '`agent.templating` is "yes", but must be true or false.'],
  [{ agent: { tools: 'search' } }, '`agent.tools` is "search", but must be a list.'],
  [
    { agent: { tools: [3] } },
    '`agent.tools[0]` is 3, but must be the name of a tool, or a tool made in code.',
  ],
  [{ agent: { maxTurns: 0 } }, '`agent.maxTurns` is 0, but must be a whole number of at least 1.'],
  [
    { agent: { maxDelegations: 1.5 } },
    '`agent.maxDelegations` is 1.5, but must be a whole number of at least 1.',
  ],
  [{ agent: { subAgents: [{}] } }, '`agent.subAgents[0].name` is missing: it must be a name.'],
  [
    { agent: { subAgents: [{ name: 'a', subAgents: [{ name: 'b', maxTurns: 4 }] }] } },
    '`agent.subAgents[0].subAgents[0].maxTurns` (4) is not a known key. Did you mean `limits.maxTurns`?',
  ],
  [
    { agent: { name: 'a', subAgents: [{ name: 'b' }, { name: 'b' }] } },
    '`agent.subAgents[1].name` is "b", but must be another name: `agent.subAgents[0].name` already has it.',
  ],
  [{ rootAgent: {} }, '`rootAgent` is an object, but must be an agent, a workflow or an app of ADK.'],
  [
    { agent: {}, rootAgent: { runAsync() {}, subAgents: [] } },
    '`rootAgent` is an object, but cannot be combined with `agent`: keep one of them.',
  ],
  [{ providers: [] }, '`providers` is a list, but must be an object of providers.'],
  [
    { providers: { mine: 'openai' } },
    '`providers.mine` is "openai", but must be an object with a `type`, or a provider made in code.',
  ],
  [
    { providers: { groq: {} } },
    `\`providers.groq.type\` is missing: it must be one of: ${TYPES}. For a known server set type: openai-compatible and preset: groq.`,
  ],
  [
    { providers: { x: { type: 'openia' } } },
    `\`providers.x.type\` is "openia", but must be one of: ${TYPES}. Did you mean "openai"?`,
  ],
  [
    { providers: { openai: { apikey: 'letmein' } } },
    '`providers.openai.apikey` (a secret (not shown)) is not a known key. Did you mean `providers.openai.apiKey`?',
  ],
  [
    { providers: { openai: { apiKey: '' } } },
    '`providers.openai.apiKey` is a secret (not shown), but must be a non-empty key.',
  ],
  [
    { providers: { openai: { baseUrl: 'api.example.com' } } },
    `\`providers.openai.baseUrl\` is "api.example.com", but ${ADDRESS}.`,
  ],
  [
    { providers: { openai: { api: 'assistants' } } },
    '`providers.openai.api` is "assistants", but must be one of: chat, responses.',
  ],
  [
    { providers: { openai: { headers: { 'X-Key': 5 } } } },
    '`providers.openai.headers.X-Key` is 5, but must be a text.',
  ],
  [
    { providers: { openai: { models: { m: { price: { input: -1, output: 1 } } } } } },
    '`providers.openai.models.m.price.input` is -1, but must be a number of at least 0.',
  ],
  [
    { providers: { openai: { retry: { maxAttempts: 99 } } } },
    '`providers.openai.retry.maxAttempts` is 99, but must be a whole number from 1 to 20.',
  ],
  [
    { providers: { openai: { idleTimeoutMs: 0 } } },
    '`providers.openai.idleTimeoutMs` is 0, but must be a whole number of at least 1.',
  ],
  [
    { history: { maxMessageTokenBudget: 'lots' } },
    '`history.maxMessageTokenBudget` is "lots", but must be a whole number of tokens, 0 for the default, or "off".',
  ],
  [
    { history: { maxMessageTokenBudget: -5 } },
    '`history.maxMessageTokenBudget` is -5, but must be a whole number of tokens, 0 for the default, or "off".',
  ],
  [{ history: { maxMessages: 0 } }, '`history.maxMessages` is 0, but must be a whole number of at least 1.'],
  [
    { history: { repair: 'strct' } },
    '`history.repair` is "strct", but must be one of: repair, strict, explain. Did you mean "strict"?',
  ],
  [
    { tools: { builtIn: ['readfile'] } },
    `\`tools.builtIn[0]\` is "readfile", but must be one of: ${BUILT_IN_TOOL_NAMES.join(', ')}. Did you mean "read_file"?`,
  ],
  [
    { tools: { approvalTimeoutMs: 'long' } },
    '`tools.approvalTimeoutMs` is "long", but must be a whole number of at least 1.',
  ],
  [
    { tools: { allowPrivateNetwork: 'yes' } },
    '`tools.allowPrivateNetwork` is "yes", but must be true, false, or a list of addresses and ranges.',
  ],
  [{ tools: { env: { TOKEN: 1 } } }, '`tools.env.TOKEN` is 1, but must be a text.'],
  [{ tools: { sandbox: 'on' } }, '`tools.sandbox` is "on", but must be one of: auto, off, required.'],
  [
    { tools: { needsApproval: { run_command: 'no' } } },
    '`tools.needsApproval.run_command` is "no", but must be true or false.',
  ],
  [
    { tools: { needsApproval: { run_comand: true } } },
    '`tools.needsApproval.run_comand` (true) is not a known key. Did you mean `tools.needsApproval.run_command`?',
  ],
  [
    { tools: { outputLimitTokens: -1 } },
    '`tools.outputLimitTokens` is -1, but must be a whole number of at least 1.',
  ],
  [
    { mcpServers: { files: { command: 'a', timeoutMs: 0 } } },
    '`mcpServers.files.timeoutMs` is 0, but must be a whole number of at least 1.',
  ],
  [{ mcpServers: { files: {} } }, `\`mcpServers.files\` is an object, but ${ONE_SERVER}.`],
  [
    { mcpServers: { files: { command: 'a', url: 'http://b' } } },
    `\`mcpServers.files\` is an object, but ${ONE_SERVER}.`,
  ],
  [{ mcpServers: { web: { url: 'nowhere' } } }, `\`mcpServers.web.url\` is "nowhere", but ${ADDRESS}.`],
  [
    { mcpServers: { 'my files': { command: 'a' } } },
    'The name in `mcpServers["my files"]` (an object) must consist of letters, digits, underscores and hyphens.',
  ],
  [
    { mcpServers: { files: { command: 'a', env: { TOKEN: 5 } } } },
    '`mcpServers.files.env.TOKEN` is 5, but must be a text.',
  ],
  [{ server: { port: 99999 } }, '`server.port` is 99999, but must be a whole number from 0 to 65535.'],
  [
    { server: { host: '0.0.0.0' } },
    '`server.host` is "0.0.0.0", but needs at least one entry in `server.tokens`, because that address is reachable from other machines.',
  ],
  [
    { server: { tokens: ['short'] } },
    '`server.tokens[0]` is a secret (not shown), but must be at least 8 characters long.',
  ],
  [
    { server: { tokens: { short: 'ann' } } },
    'The name in `server.tokens["[hidden]"]` (a secret (not shown)) must be at least 8 characters long.',
  ],
  [
    { server: { tokens: { 'a-token-that-is-long': '' } } },
    '`server.tokens["[hidden]"]` is a secret (not shown), but must be the name of a user.',
  ],
  [{ server: { allowedOrigins: ['*'] } }, `\`server.allowedOrigins[0]\` is "*", but ${ADDRESS}.`],
  [
    { log: { level: 'debgu' } },
    '`log.level` is "debgu", but must be one of: debug, info, warn, error, silent. Did you mean "debug"?',
  ],
  [{ log: { content: 1 } }, '`log.content` is 1, but must be true or false.'],
  [
    { telemetry: { endpoint: 'localhost:4318' } },
    `\`telemetry.endpoint\` is "localhost:4318", but ${ADDRESS}.`,
  ],
]

test.each(WRONG)('the configuration %j is refused: %s', (input, message) => {
  expect(problemsOf(input)).toEqual([message])
})

test('several problems of a configuration are reported at once, one per line', () => {
  const input = { agnet: {}, log: { level: 'loud' } }
  expect(problemsOf(input)).toHaveLength(2)
  expect(() => parseConfig(input, { where: 'lango.config.json' })).toThrow(
    /^lango\.config\.json is not valid\. 2 problems:\n- `log\.level` is "loud".*\n- `agnet` \(an object\)/,
  )
})

test('an error of the configuration shows no secret, wherever it was put', () => {
  const key = 'sk-proj-abcdefghijklmnop'
  const inputs = [
    { agent: { modle: key } },
    { providers: { openai: { type: key } } },
    { store: `mysql://u:${key}@h/x` },
    { [key]: 1 },
    { server: { tokens: key } },
  ]
  for (const input of inputs) {
    expect(problemsOf(input)).toHaveLength(1)
    expect(problemsOf(input).join()).not.toContain(key)
  }
})

test('every default model of the configuration is in the catalogue', () => {
  const registry = createRegistry()
  for (const { name, model } of KEYED_PROVIDERS) {
    expect(registry.resolve(`${name}/${model}`).provider.describeModel(model).known, name).toBe(true)
    expect(describeModel(name, model).price, name).toBeDefined()
  }
})

test('the configuration schema fills in the documented defaults', () => {
  expect(parseConfig({})).toMatchObject({
    app: 'lango',
    store: 'sqlite:./lango.db',
    server: { port: 18789, host: '127.0.0.1', tokens: {} },
    log: { level: 'info', content: false },
    telemetry: { content: false },
    tools: { builtIn: [], allowPrivateNetwork: false },
  })
})

test('the configuration schema gives a provider whose name is a type that type', () => {
  const { providers } = parseConfig({ providers: { anthropic: { apiKey: 'k' } } })
  const registry = createRegistry(providers as Parameters<typeof createRegistry>[0])
  expect(registry.resolve('anthropic/claude-sonnet-4-6').provider.id).toBe('anthropic')
})

test('the configuration schema takes tools, agents and providers that were made in code', () => {
  const tool = { name: 'x', parameters: {}, execute() {} }
  const provider = { id: 'play', generate() {} }
  const config = parseConfig({ agent: { tools: [tool, 'read_file'] }, providers: { play: provider } })
  expect(config.agent?.tools?.[0]).toBe(tool)
  expect(config.providers.play).toBe(provider)
})

test('the JSON schema of the configuration requires no key, refuses unknown keys and leaves out what only code can hold', () => {
  const schema = configJsonSchema() as {
    required?: string[]
    additionalProperties: boolean
    properties: Record<string, Record<string, unknown>>
  }
  expect(schema.required).toBeUndefined()
  expect(schema.additionalProperties).toBe(false)
  expect(schema.properties.rootAgent).toMatchObject({ not: {} })
  expect(schema.properties.app).toMatchObject({ type: 'string', default: 'lango' })
})
