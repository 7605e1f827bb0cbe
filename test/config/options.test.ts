// The options of createRuntime and a configuration file are checked by one schema: one table of mistakes for both.
import { readFileSync } from 'node:fs'
import {
  type BaseLlm,
  BasePlugin,
  InMemoryArtifactService,
  InMemoryMemoryService,
  LlmAgent,
} from '@google/adk'
import { metrics, trace } from '@opentelemetry/api'
import { afterEach, describe, expect, test } from 'vitest'
import { parseConfig } from '../../src/config/parse-config.js'
import type { ConfigProblem } from '../../src/config/read-data.js'
import { AgentError } from '../../src/errors.js'
import { silentLogger } from '../../src/logger.js'
import { PROFILES } from '../../src/provider/repair/profile.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { defineTool } from '../../src/tool.js'

const opened: Runtime[] = []
afterEach(async () => {
  for (const runtime of opened.splice(0)) await runtime.close()
})

async function create(options: unknown): Promise<Runtime> {
  const runtime = await createRuntime(options as RuntimeOptions)
  opened.push(runtime)
  return runtime
}

function problemsOf(error: unknown, code = 'invalid-config'): string[] {
  expect(error).toBeInstanceOf(AgentError)
  expect(error).toMatchObject({ code })
  const { details, message } = error as AgentError
  const problems = details.problems as ConfigProblem[]
  for (const problem of problems) expect(message).toContain(problem.message)
  return problems.map(problem => problem.message)
}

const inFile = (input: unknown): string[] => {
  try {
    parseConfig(input)
  } catch (error) {
    return problemsOf(error)
  }
  return []
}

const inCode = async (input: unknown): Promise<string[]> => {
  try {
    await create(input)
  } catch (error) {
    return problemsOf(error)
  }
  return []
}

type Nested = Record<string, unknown>
const base = () => ({ store: 'memory:', agent: { model: 'demo/demo' } })
const agent = (more: Nested) => ({ ...base(), agent: { model: 'demo/demo', ...more } })
const at = (key: string, value: unknown) => ({ ...base(), [key]: value })
const tool = { name: 'a', description: '', parameters: {}, execute: () => 1 }
const unknown = (path: string, value: string, meant: string) =>
  `\`${path}\` (${value}) is not a known key. Did you mean \`${meant}\`?`

const TYPOS: [input: Nested, message: string][] = [
  [at('stor', 'memory:'), unknown('stor', '"memory:"', 'store')],
  [at('maxTurns', 3), unknown('maxTurns', '3', 'limits.maxTurns')],
  [at('limits', { maxTurn: 3 }), unknown('limits.maxTurn', '3', 'limits.maxTurns')],
  [at('adk', { plugin: [] }), unknown('adk.plugin', 'a list', 'adk.plugins')],
  [
    at('adk', { resumabilityConf: {} }),
    unknown('adk.resumabilityConf', 'an object', 'adk.resumabilityConfig'),
  ],
  [agent({ maxTurn: 3 }), unknown('agent.maxTurn', '3', 'agent.maxTurns')],
  [agent({ instructions: 'x' }), unknown('agent.instructions', '"x"', 'agent.instruction')],
  [
    agent({ subAgents: [{ name: 'a', modle: 'x' }] }),
    unknown('agent.subAgents[0].modle', '"x"', 'agent.subAgents[0].model'),
  ],
  [
    agent({ subAgents: [{ name: 'a', subAgents: [{ name: 'b', tool: [] }] }] }),
    unknown('agent.subAgents[0].subAgents[0].tool', 'a list', 'agent.subAgents[0].subAgents[0].tools'),
  ],
  [
    agent({ tools: [{ ...tool, needApproval: true }] }),
    unknown('agent.tools[0].needApproval', 'true', 'agent.tools[0].needsApproval'),
  ],
  [
    at('providers', { openai: { type: 'openai', apikey: 'letmein' } }),
    unknown('providers.openai.apikey', 'a secret (not shown)', 'providers.openai.apiKey'),
  ],
  [
    at('providers', { openai: { retry: { maxAttempt: 1 } } }),
    unknown('providers.openai.retry.maxAttempt', '1', 'providers.openai.retry.maxAttempts'),
  ],
  [
    at('providers', { openai: { models: { m: { contextwindows: 1 } } } }),
    unknown('providers.openai.models.m.contextwindows', '1', 'providers.openai.models.m.contextWindow'),
  ],
  [
    at('providers', { openai: { models: { m: { price: { input: 1, output: 1, cacheInput: 1 } } } } }),
    unknown('providers.openai.models.m.price.cacheInput', '1', 'providers.openai.models.m.price.cachedInput'),
  ],
  [at('history', { maxMessage: 3 }), unknown('history.maxMessage', '3', 'history.maxMessages')],
  [at('tools', { builtin: [] }), unknown('tools.builtin', 'a list', 'tools.builtIn')],
  [
    at('tools', { needsApproval: { run_comand: true } }),
    unknown('tools.needsApproval.run_comand', 'true', 'tools.needsApproval.run_command'),
  ],
  [
    at('mcpServers', { files: { command: 'a', arg: [] } }),
    unknown('mcpServers.files.arg', 'a list', 'mcpServers.files.args'),
  ],
  [at('telemetry', { endPoints: 'x' }), unknown('telemetry.endPoints', '"x"', 'telemetry.endpoint')],
  [at('adk', { plugin: [] }), unknown('adk.plugin', 'a list', 'adk.plugins')],
  [
    at('adk', { runConfig: { maxLLMCall: 3 } }),
    unknown('adk.runConfig.maxLLMCall', '3', 'adk.runConfig.maxLlmCalls'),
  ],
]

const WHOLE = 'must be a whole number of at least 1'
const WRONG: [input: Nested, message: string][] = [
  [agent({ maxTurns: -1 }), `\`agent.maxTurns\` is -1, but ${WHOLE}.`],
  [agent({ maxTurns: Number.NaN }), `\`agent.maxTurns\` is NaN, but ${WHOLE}.`],
  [agent({ maxDelegations: '3' }), `\`agent.maxDelegations\` is "3", but ${WHOLE}.`],
  [agent({ name: 'a b' }), expect.stringContaining('`agent.name` is "a b", but must start with') as never],
  [agent({ templating: 'yes' }), '`agent.templating` is "yes", but must be true or false.'],
  [agent({ subAgents: [{}] }), '`agent.subAgents[0].name` is missing: it must be a name.'],
  [
    agent({ name: 'a', subAgents: [{ name: 'a' }] }),
    '`agent.subAgents[0].name` is "a", but must be another name: `agent.name` already has it.',
  ],
  [
    agent({ tools: [tool, tool] }),
    '`agent.tools[1].name` is "a", but must be another name: `agent.tools[0].name` already has it.',
  ],
  [agent({ tools: [3] }), '`agent.tools[0]` is 3, but must be the name of a tool, or a tool made in code.'],
  [agent({ tools: [{ ...tool, execute: 'x' }] }), '`agent.tools[0].execute` is "x", but must be a function.'],
  [
    agent({ tools: [{ ...tool, timeoutMs: Number.NaN }] }),
    '`agent.tools[0].timeoutMs` is NaN, but must be a number of milliseconds greater than 0, or Infinity.',
  ],
  [
    agent({ tools: [{ ...tool, effect: 'raed' }] }),
    '`agent.tools[0].effect` is "raed", but must be one of: read, idempotent, once.',
  ],
  [
    at('adk', { eventsCompactionConfig: {} }),
    '`adk.eventsCompactionConfig` (an object) is not a known key. This release of ADK has no such setting. It compacts by `contextCompactors`.',
  ],
  [at('history', { maxMessages: 0 }), `\`history.maxMessages\` is 0, but ${WHOLE}.`],
  [
    at('history', { maxMessageTokenBudget: 10.5 }),
    '`history.maxMessageTokenBudget` is 10.5, but must be a whole number of tokens, 0 for the default, or "off".',
  ],
  [
    at('history', { repair: 'strct' }),
    '`history.repair` is "strct", but must be one of: repair, strict, explain. Did you mean "strict"?',
  ],
  [at('history', new Map()), '`history` is an object of class Map, but must be a plain object.'],
  [at('tools', { approvalTimeoutMs: -1 }), `\`tools.approvalTimeoutMs\` is -1, but ${WHOLE}.`],
  [at('tools', { commandTimeoutMs: Number.NaN }), `\`tools.commandTimeoutMs\` is NaN, but ${WHOLE}.`],
  [at('tools', { outputLimitTokens: 0 }), `\`tools.outputLimitTokens\` is 0, but ${WHOLE}.`],
  [
    at('mcpServers', { files: { command: 'a', timeoutMs: -1 } }),
    `\`mcpServers.files.timeoutMs\` is -1, but ${WHOLE}.`,
  ],
  [at('telemetry', { content: 1 }), '`telemetry.content` is 1, but must be true or false.'],
  [
    at('telemetry', { tracerProvider: {} }),
    '`telemetry.tracerProvider` is an object, but must be an OpenTelemetry tracer provider.',
  ],
  [at('adk', { plugins: {} }), '`adk.plugins` is an object, but must be a list.'],
  [at('adk', { plugins: [{}] }), '`adk.plugins[0]` is an object, but must be an ADK plugin.'],
  [at('adk', { memoryService: 'x' }), '`adk.memoryService` is "x", but must be an ADK memory service.'],
  [
    at('adk', { artifactService: {} }),
    '`adk.artifactService` is an object, but must be an ADK artifact service.',
  ],
  [
    at('adk', { credentialService: {} }),
    '`adk.credentialService` is an object, but must be an ADK credential service.',
  ],
  [
    at('adk', { runConfig: { maxLlmCalls: Number.NaN } }),
    '`adk.runConfig.maxLlmCalls` is NaN, but must be a whole number.',
  ],
  [
    at('rootAgent', { runAsync() {}, subAgents: [] }),
    '`rootAgent` is an object, but cannot be combined with `agent`: keep one of them.',
  ],
  [
    at('agent', new LlmAgent({ name: 'ada' })),
    '`agent` is an object of class LlmAgent, but must be a plain object. Pass an ADK agent as `rootAgent`.',
  ],
  [
    at('providers', JSON.parse('{ "__proto__": {} }')),
    'The name in `providers.__proto__` (an object) must be another name.',
  ],
  [
    JSON.parse('{ "store": "memory:", "agent": { "model": "demo/demo" }, "history": { "__proto__": 1 } }'),
    '`history.__proto__` (1) is not a known key. Known keys here: maxMessageTokenBudget, maxMessages, maxAnswerLength, observationalMemory, memory, repair.',
  ],
  [
    at('telemetry', { constructor: 1 }),
    expect.stringMatching(
      /^`telemetry\.constructor` \(1\) is not a known key\. Known keys here: endpoint, /,
    ) as never,
  ],
]

const titled = (rows: readonly [Nested, string][]) =>
  rows.map(([input, message]) => [String(message), input, message] as const)

describe.each([
  ['in code', inCode],
  ['in a file', async (input: unknown) => inFile(input)],
])('one schema, %s', (place, read) => {
  test.each(titled(TYPOS))(`options ${place} are refused: %s`, async (_title, input, message) => {
    expect(await read(input)).toEqual([message])
  })

  test.each(titled(WRONG))(`options ${place} are refused: %s`, async (_title, input, message) => {
    expect(await read(input)).toEqual([message])
  })

  test(`keys set to undefined count as absent ${place}, also where no such key is known`, async () => {
    const input = {
      ...base(),
      stor: undefined,
      agent: { model: 'demo/demo', maxTurn: undefined, maxTurns: undefined, subAgents: undefined },
      providers: { openai: undefined, anthropic: { apiKey: undefined, retry: { sleeep: undefined } } },
      history: undefined,
      mcpServers: { files: undefined },
      tools: { builtIn: undefined, env: { A: undefined } },
      adk: { plugins: undefined, runConfig: { maxLlmCalls: undefined } },
    }
    expect(await read(input)).toEqual([])
  })

  test(`several problems ${place} are reported at once`, async () => {
    const input = { ...base(), stor: 1, agent: { model: 'demo/demo', maxTurn: 3 } }
    expect(await read(input)).toHaveLength(2)
  })

  test(`agents that form a circle are refused ${place}`, async () => {
    const cycle: Nested = { name: 'x', model: 'demo/demo' }
    cycle.subAgents = [cycle]
    expect(await read({ ...base(), agent: cycle })).toEqual([
      'The agents form a circle: x → x. An agent cannot be below itself.',
    ])
  })
})

const CODE_ONLY: [input: unknown, message: string][] = [
  [undefined, 'It is undefined, but must be an object.'],
  [at('app', 3), '`app` is 3, but must be a non-empty text, or an ADK app.'],
  [
    { store: 'memory:' },
    'An agent is missing: give `agent: { model: "provider/model", … }`, `rootAgent`, or an ADK app as `app`.',
  ],
  [
    { agent: {} },
    '`agent.model` is missing. Name one as `provider/model`, for example `openai/gpt-5.2`, or `demo/demo` to try without a key.',
  ],
  [
    at('server', {}),
    '`server` (an object) is not a known key. Only the commands of `lango` read it, from a configuration file.',
  ],
  [at('log', {}), '`log` (an object) is not a known key. Give `logger: createLogger({ … })` instead.'],
  [
    at('store', {}),
    '`store` is an object, but must be an address that starts with sqlite:, postgres:// or memory:, or a store made in code.',
  ],
  [
    at('store', Promise.resolve()),
    '`store` is an object of class Promise, but must be an address that starts with sqlite:, postgres:// or memory:, or a store made in code.',
  ],
  [
    at('logger', { info() {} }),
    '`logger` is an object, but must be a logger with the methods debug, info, warn and error.',
  ],
  [
    agent({ model: {} }),
    '`agent.model` is an object, but must be a model such as "openai/gpt-5.2", or an ADK model.',
  ],
]

test.each(CODE_ONLY)('createRuntime(%j) is refused', async (input, message) => {
  expect(await inCode(input)).toEqual([message])
})

test('createRuntime refuses a store that lacks members of the contract, and names them', async () => {
  const store = await openStore('memory:')
  const without = (part: object, ...names: string[]) =>
    Object.create(part, Object.fromEntries(names.map(name => [name, { value: undefined }])))
  const runs = without(store.runs, 'saveStep', 'readCalls')
  const lacking = Object.create(without(store, 'erase', 'spending'), { runs: { value: runs } })
  expect(await inCode(at('store', lacking))).toEqual([
    '`store` lacks members of the interface SessionStore: erase, runs.saveStep, runs.readCalls, spending. Add them to the store.',
  ])
  await store.close()
})

test('createRuntime with wrong options opens no store', async () => {
  const store = await openStore('memory:')
  await expect(create({ store, agnet: {} })).rejects.toThrow(/^The argument of createRuntime is not valid: /)
  await store.close()
})

test('createRuntime takes values made in code as they are', async () => {
  class Plain extends BasePlugin {}
  const logged: string[] = []
  const store = await openStore('memory:')
  const own = defineTool({ name: 'own', description: '', parameters: {}, execute: () => 1 })
  const options = {
    store,
    agent: { model: 'play/m', tools: [own], subAgents: [{ name: 'b', tools: [own] }] },
    providers: { play: new ScriptedProvider([{ text: 'hi' }]) },
    adk: {
      plugins: [new Plain('p')],
      artifactService: new InMemoryArtifactService(),
      memoryService: new InMemoryMemoryService(),
      credentialService: { loadCredential: async () => undefined, saveCredential: async () => {} },
    },
    telemetry: { tracerProvider: trace.getTracerProvider(), logger: silentLogger },
    logger: { ...silentLogger, info: (message: string) => logged.push(message) },
  } satisfies RuntimeOptions
  const before = Object.freeze(options)
  const runtime = await create(before)
  expect(runtime.store).toBe(store)
  expect((await runtime.runAndCollect({ text: 'x' })).text).toBe('hi')
  expect(logged).toContain('Run started')
  const config = parseConfig({
    agent: { tools: [own] },
    providers: { play: options.providers.play },
    adk: options.adk,
    telemetry: options.telemetry,
  })
  expect(config.agent?.tools?.[0]).toBe(own)
  expect(config.providers.play).toBe(options.providers.play)
  expect(config.adk?.plugins?.[0]).toBe(options.adk.plugins[0])
  expect(config.adk?.artifactService).toBe(options.adk.artifactService)
  expect(config.telemetry.tracerProvider).toBe(options.telemetry.tracerProvider)
  await runtime.close()
  await store.close()
})

test('createRuntime takes models and agents of ADK, repair profiles and functions of a retry', async () => {
  const model = { model: 'm', async *generateContentAsync() {}, connect() {} } as unknown as BaseLlm
  const profile = Object.values(PROFILES)[0]
  expect(await inCode({ store: 'memory:', agent: { model } })).toEqual([])
  expect(
    await inCode({ store: 'memory:', rootAgent: new LlmAgent({ name: 'ada', model: 'demo/demo' }) }),
  ).toEqual([])
  const retry = { maxAttempts: 1, sleep: async () => {}, random: () => 0 }
  expect(await inCode(at('providers', { openai: { profile, env: { A: undefined }, retry } }))).toEqual([])
})

test('a provider whose name is a type needs no type in code either', async () => {
  const runtime = await create({
    store: 'memory:',
    agent: { model: 'openai/gpt-5.2' },
    providers: { openai: { apiKey: 'k' } },
  })
  expect((await runtime.models()).some(({ reference }) => reference === 'openai/gpt-5.2')).toBe(true)
})

test('a checked configuration is taken by createRuntime, apart from what only commands read', async () => {
  const { server: _server, log: _log, ...options } = parseConfig({ ...base(), providers: { openai: {} } })
  expect(await inCode(options)).toEqual([])
})

// Every key that configuration.md lists, once.
const EVERYTHING = {
  $schema: 'https://example.com/lango.json',
  app: 'a',
  store: 'memory:',
  providers: {
    x: {
      type: 'openai',
      apiKey: 'k',
      baseUrl: 'http://127.0.0.1:1',
      account: 'company',
      api: 'chat',
      profile: 'openai-chat',
      preset: 'groq',
      headers: { a: 'b' },
      models: {
        m: {
          contextWindow: 1,
          outputLimit: 1,
          price: {
            input: 1,
            output: 1,
            cachedInput: 1,
            cacheWrite: 0,
            cacheWrite1h: 2,
            longContext: {
              above: 200_000,
              input: 2,
              output: 4,
              cachedInput: 1,
              cacheWrite: 2,
              cacheWrite1h: 4,
            },
          },
          capabilities: { vision: true, tools: true, thinking: false },
          profile: 'x',
        },
      },
      retry: { maxAttempts: 1, baseDelayMs: 0, maxDelayMs: 0, sleep: async () => {}, random: () => 0 },
      idleTimeoutMs: 1,
      vertexai: false,
      project: 'p',
      location: 'l',
      region: 'r',
      apiVersion: 'v1',
      deployments: { d: 'm' },
      env: { A: 'b' },
    },
  },
  agent: {
    name: 'a',
    model: 'demo/demo',
    description: '',
    instruction: '',
    templating: true,
    thinking: 'low',
    temperature: 0,
    maxOutputTokens: 1,
    outputSchema: { type: 'object' },
    fallback: ['demo/demo'],
    tools: ['read_file', tool],
    subAgents: [
      {
        name: 'b',
        model: 'demo/demo',
        description: '',
        instruction: '',
        templating: false,
        thinking: 'low',
        temperature: 0,
        maxOutputTokens: 1,
        outputSchema: { type: 'object' },
        fallback: ['demo/demo'],
        tools: [],
        subAgents: [{ name: 'c' }],
      },
    ],
    multiAgent: true,
    maxTurns: 1,
    maxDelegations: 1,
  },
  history: {
    maxMessageTokenBudget: 'off',
    maxMessages: 1,
    maxAnswerLength: 1000,
    observationalMemory: true,
    memory: { observer: 'demo/demo', recall: true, scope: 'user' },
    repair: 'strict',
  },
  runs: { maxRunning: 1, resume: false, maxAttempts: 1 },
  tools: {
    builtIn: ['read_file'],
    workspace: '.',
    files: { read: async () => undefined, write: async () => false },
    allowPrivateNetwork: ['10.0.0.0/8'],
    commandTimeoutMs: 1,
    env: { A: 'b' },
    sandbox: 'off',
    needsApproval: {
      read_file: true,
      list_files: true,
      search_files: true,
      write_file: true,
      edit_file: true,
      run_command: true,
      fetch_url: true,
      current_time: true,
    },
    approvalTimeoutMs: 1,
    outputLimitTokens: 1,
    keepOutputs: true,
    effects: { look: 'read', pay: { effect: 'once', onUnknown: 'ask' } },
  },
  mcpServers: {
    x: {
      command: 'a',
      args: [''],
      env: { A: 'b' },
      cwd: '.',
      needsApproval: true,
      timeoutMs: 1,
      maxTimeoutMs: 2,
      sampling: true,
      roots: ['.'],
    },
    y: {
      url: 'http://127.0.0.1:1',
      headers: { a: 'b' },
      oauth: { clientId: 'c', clientSecret: 's', scope: 'r', redirectPort: 1 },
    },
  },
  telemetry: {
    endpoint: 'http://127.0.0.1:1',
    headers: { a: 'b' },
    content: true,
    metrics: true,
    serviceName: 's',
    tracerProvider: trace.getTracerProvider(),
    meterProvider: metrics.getMeterProvider(),
    logger: silentLogger,
  },
  artifacts: { place: 'memory:', maxBytes: 1000 },
  engine: 'leases',
  budget: { perRunUsd: 1, perSessionUsd: 2, perUserUsdPerDay: 3, unknownPrice: 'ignore' },
  limits: { maxTurns: 3, maxDelegations: 3, maxCallsPerAnswer: 3, loop: { warnAfter: 3, stopAfter: 5 } },
  adk: {
    plugins: [],
    resumabilityConfig: { isResumable: true },
    contextCompactors: [],
    artifactService: new InMemoryArtifactService(),
    memoryService: new InMemoryMemoryService(),
    credentialService: { loadCredential: async () => undefined, saveCredential: async () => {} },
    runConfig: {
      speechConfig: {},
      responseModalities: [],
      saveInputBlobsAsArtifacts: true,
      supportCfc: false,
      streamingMode: 'sse',
      outputAudioTranscription: {},
      inputAudioTranscription: {},
      enableAffectiveDialog: false,
      proactivity: {},
      realtimeInputConfig: {},
      contextWindowCompression: {},
      maxLlmCalls: 0,
      pauseOnToolCalls: false,
      plainTextToolConfirmation: false,
      allowRemoteToolConfirmation: false,
      remoteDelivered: false,
    },
  },
  server: {
    port: 0,
    host: '127.0.0.1',
    tokens: {},
    allowedOrigins: ['https://example.com'],
    allowedHosts: ['example.com'],
    trustedProxies: ['127.0.0.1'],
    keepRunsDays: 1,
    graceMs: 0,
    closeMs: 100,
    runsPerUser: 1,
    streamsPerUser: 1,
    maxBodyBytes: 1024,
    maxMessages: 1,
    maxStateKeys: 1,
    maxParts: 1,
    maxDepth: 4,
    maxValues: 100,
  },
  retention: { sessionsDays: 1, runsDays: 1, usageDays: 1 },
  schedules: [
    {
      ...{ name: 'a', cron: '0 9 * * *', timeZone: 'Europe/Berlin', text: 'Hi', session: 's', user: 'u' },
      ...{ model: 'demo/demo', missed: 'all', overlap: 'skip' },
    },
  ],
  hooks: [
    {
      ...{ name: 'a', secret: 'a-secret-of-sixteen', scheme: 'github', text: 'Hi', session: 's', user: 'u' },
      model: 'demo/demo',
    },
  ],
  log: { level: 'info', content: true, file: 'a.log', pretty: true },
}

describe('every documented option', () => {
  const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  const library = readFileSync(new URL('../../docs/library.md', import.meta.url), 'utf8')

  test('every option of configuration.md is accepted in a file, and in code where a runtime reads it', async () => {
    expect(documentedKeys(page).filter(path => !has(EVERYTHING, path))).toEqual([])
    expect(inFile(EVERYTHING)).toEqual([])
    const { server: _server, hooks: _hooks, log: _log, $schema: _schema, ...options } = EVERYTHING
    expect(await inCode(options)).toEqual([])
  })

  test('an effect of a tool that does not exist is refused', () => {
    const expected = '`tools.effects.pay` is "never", but must be one of: read, idempotent, once'
    expect(inFile({ tools: { effects: { pay: 'never' } } })).toEqual([expect.stringContaining(expected)])
    expect(inFile({ tools: { effects: { pay: { onUnknown: 'hope' } } } })).toHaveLength(1)
  })

  test('every option of library.md is accepted by createRuntime', async () => {
    const section = library.slice(
      library.indexOf('can exist only in code'),
      library.indexOf('`runtime.run(input)` takes'),
    )
    const keys = [...section.matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([\w.]+)`/g)].flatMap(([, key]) => key ?? []),
    )
    expect(keys.length).toBeGreaterThan(8)
    const store = await openStore('memory:')
    const known: Nested = {
      ...EVERYTHING,
      store,
      logger: console,
      model: 'demo/demo',
      rootAgent: new LlmAgent({ name: 'r' }),
    }
    expect(keys.filter(key => !has(known, key))).toEqual([])
    const { server: _s, hooks: _h, log: _l, $schema: _c, agent: _a, ...options } = known
    expect(await inCode(options)).toEqual([])
    await store.close()
  })

  test('every run option of library.md is accepted by run', async () => {
    const section = library.slice(
      library.indexOf('`runtime.run(input)` takes'),
      library.indexOf('An unknown key is refused'),
    )
    const keys = [...section.matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`(\w+)`/g)].flatMap(([, key]) => key ?? []),
    )
    const input: Nested = {
      text: 'x',
      parts: [{ text: 'y' }],
      sessionId: 's',
      userId: 'u',
      model: 'demo/demo',
      stateDelta: { a: 1 },
      whenBusy: 'queue',
      at: 1,
      onApproval: () => 'no',
      signal: new AbortController().signal,
      runId: crypto.randomUUID(),
      request: 'digest',
      budget: { perRunUsd: 1 },
      clientTools: { tools: [] },
      generation: {},
      note: {},
      onStored: () => {},
      thinking: 'off' as const,
      temperature: 0,
      maxOutputTokens: 1000,
      outputSchema: { type: 'object' },
      fallback: ['demo/demo'],
    }
    expect(keys.sort()).toEqual(Object.keys(input).sort())
    const runtime = await create(base())
    // The demo model answers in prose.
    const { outputSchema: _schema, ...ofDemo } = input
    expect((await runtime.runAndCollect(ofDemo)).finishReason).toBe('stop')
  })
})

/** Paths such as `providers.<name>.retry.maxAttempts`, from the tables of the page. */
function documentedKeys(page: string): string[] {
  const keys = page.slice(page.indexOf('## Keys'), page.indexOf('## Environment'))
  let place = ''
  const paths = keys.split('\n').flatMap(line => {
    place = /^### `(.+)`$/.exec(line)?.[1] ?? place
    const key = /^\| `([^`]+)` \|/.exec(line)?.[1]
    return key === undefined ? [] : [place === '' ? key : `${place}.${key}`]
  })
  expect(paths.length).toBeGreaterThan(80)
  return paths.filter(path => path !== 'rootAgent')
}

/** Whether some value stands at a path; `<name>` and `[]` are any name and any element. */
function has(value: unknown, path: string): boolean {
  const [step, ...rest] = path.replaceAll('[]', '.<name>').split('.')
  if (step === undefined || typeof value !== 'object' || value === null) return false
  const found = step === '<name>' ? Object.values(value) : [(value as Nested)[step]]
  return found.some(item => item !== undefined && (rest.length === 0 || has(item, rest.join('.'))))
}
