// biome-ignore-all lint/suspicious/noTemplateCurlyInString: such texts are what is tested here
import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { redact } from '../../src/base/redact.js'
import type { LangoConfigInput } from '../../src/config/config.js'
import { ENVIRONMENT_VARIABLES } from '../../src/config/environment.js'
import { folderNeeds } from '../../src/config/folder-needs.js'
import {
  defineConfig,
  type LoadConfigOptions,
  loadConfig,
  loadRootAgent,
} from '../../src/config/load-config.js'

import { temporaryFolder } from '../support/temporary-folder.js'

const run = promisify(execFile)

/** Loads the configuration of a folder with these files; nothing of the real environment is seen. */
async function load(
  files: Record<string, string>,
  env: Record<string, string> = {},
  options: LoadConfigOptions = {},
) {
  const cwd = await temporaryFolder()
  for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text)
  return { cwd, ...(await loadConfig({ cwd, env, ...options })) }
}

test.each([
  ['lango.config.json', '{ "app": "mine" }'],
  ['lango.config.json', '\uFEFF{ "app": "mine" }'],
  ['lango.config.yaml', 'app: mine'],
  ['lango.config.yml', '# a comment\napp: mine\n'],
  ['lango.config.mjs', 'export default { app: "mine" }'],
  ['lango.config.mjs', 'export const config = { app: "mine" }'],
  ['lango.config.js', 'module.exports = { app: "mine" }'],
  ['lango.config.ts', 'const app: string = "mine"\nexport default { app }'],
  ['lango.config.mts', 'interface A { app: string }\nexport const config: A = { app: "mine" }'],
])('the configuration file %s is found: %j', async (name, text) => {
  const { config, file, cwd } = await load({ [name]: text })
  expect(config.app).toBe('mine')
  expect(file).toBe(join(cwd, name))
})

test('no configuration file, or an empty one, gives the defaults', async () => {
  expect((await load({})).config.app).toBe('lango')
  expect((await load({ 'lango.config.yaml': '' })).config.app).toBe('lango')
})

test.each([
  [
    'two configuration files',
    { 'lango.config.json': '{}', 'lango.config.yaml': '' },
    /^Several configuration files in .*: lango\.config\.json, lango\.config\.yaml\. Keep one of them\.$/,
  ],
  ['invalid JSON', { 'lango.config.json': '{ app: 1 }' }, /^Cannot read .*lango\.config\.json: .*JSON/],
  ['invalid YAML', { 'lango.config.yaml': 'a: [1' }, /^Cannot read .*lango\.config\.yaml: /],
  [
    'a list as configuration',
    { 'lango.config.json': '[1]' },
    /^lango\.config\.json is not valid: it must contain an object/,
  ],
  [
    'a program without a configuration',
    { 'lango.config.mjs': 'export const x = 1' },
    /exports no configuration\. Export one: export default defineConfig/,
  ],
  [
    'a program that fails',
    { 'lango.config.mjs': 'null.x' },
    /^Cannot read .*lango\.config\.mjs: Cannot read properties/,
  ],
  [
    'a wrong value',
    { 'lango.config.yaml': 'server:\n  port: high' },
    /^lango\.config\.yaml is not valid: `server\.port` is "high"/,
  ],
  [
    'a variable that is not set',
    { 'lango.config.yaml': 'providers:\n  openai:\n    apiKey: ${MY_KEY}' },
    /^lango\.config\.yaml is not valid: `providers\.openai\.apiKey` refers to the environment variable MY_KEY, which is not set\. Set it, or write \$\{MY_KEY:-default\}\.$/,
  ],
])('loadConfig refuses %s', async (_name, files, message) => {
  await expect(load(files as Record<string, string>)).rejects.toThrow(message)
  await expect(load(files as Record<string, string>)).rejects.toMatchObject({ code: 'invalid-config' })
})

test('a configuration file that was named must exist and be of a known kind', async () => {
  await expect(load({}, {}, { file: 'other.yaml' })).rejects.toThrow(
    /^Configuration file .*other\.yaml does not exist/,
  )
  await expect(load({ 'x.toml': '' }, {}, { file: 'x.toml' })).rejects.toThrow(/it must end in \.ts, /)
  expect((await load({ 'other.yaml': 'app: other' }, { LANGO_CONFIG: 'other.yaml' })).config.app).toBe(
    'other',
  )
})

const files = { 'lango.config.json': '{ "app": "file", "server": { "port": 1, "host": "localhost" } }' }

test('options win over environment, file and defaults; objects are merged key by key', async () => {
  const env = { LANGO_APP: 'environment', PORT: '2' }
  const { config, sources } = await load(files, env, { overrides: { server: { port: 3 }, app: undefined } })
  expect(config.app).toBe('environment')
  expect(config.server).toMatchObject({ port: 3, host: 'localhost' })
  expect(sources).toEqual({
    app: 'the environment variable LANGO_APP',
    'server.port': 'the options',
    'server.host': 'lango.config.json',
    'agent.model': 'default: no key was found',
  })
})

test.each([
  ['LANGO_APP', 'x', { app: 'x' }],
  ['LANGO_MODEL', 'openai/gpt-5.2', { agent: { model: 'openai/gpt-5.2' } }],
  ['LANGO_STORE', 'memory:', { store: 'memory:' }],
  ['DATABASE_URL', 'postgres://h/d', { store: 'postgres://h/d' }],
  ['LANGO_MAX_TURNS', '7', { limits: { maxTurns: 7 } }],
  ['LANGO_TOKEN_BUDGET', '9000', { history: { maxMessageTokenBudget: 9000 } }],
  ['LANGO_TOKEN_BUDGET', 'off', { history: { maxMessageTokenBudget: 'off' } }],
  ['LANGO_WORKSPACE', '/somewhere', { tools: { workspace: '/somewhere' } }],
  ['LANGO_PORT', '8080', { server: { port: 8080 } }],
  ['PORT', '8081', { server: { port: 8081 } }],
  ['LANGO_HOST', '::1', { server: { host: '::1' } }],
  [
    'LANGO_TOKENS',
    'first-token-of-two, second-token-of-two',
    { server: { tokens: ['first-token-of-two', 'second-token-of-two'] } },
  ],
  ['LANGO_LOG_LEVEL', 'debug', { log: { level: 'debug' } }],
  ['LANGO_LOG_FILE', '/x.log', { log: { file: '/x.log' } }],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://c:4318', { telemetry: { endpoint: 'http://c:4318' } }],
  ['OTEL_SERVICE_NAME', 'shop', { telemetry: { serviceName: 'shop' } }],
  ['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'true', { telemetry: { content: true } }],
  ['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'SPAN_ONLY', { telemetry: { content: true } }],
  ['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT', 'EVENT_ONLY', { telemetry: { content: false } }],
  ['OTEL_METRICS_EXPORTER', 'none', { telemetry: { metrics: false } }],
])('the variable %s=%s sets its key', async (name, value, expected) => {
  expect((await load({}, { [name]: value })).config).toMatchObject(expected)
  expect(ENVIRONMENT_VARIABLES.map(variable => variable.name)).toContain(name)
})

test('a variable of Lango’s own wins over a platform’s; empty ones and another database do not count', async () => {
  const env = { LANGO_STORE: 'memory:', DATABASE_URL: 'postgres://h/d', LANGO_APP: '' }
  expect((await load({}, env)).config).toMatchObject({ store: 'memory:', app: 'lango' })
  expect((await load({}, { DATABASE_URL: 'mysql://h/d' })).sources.store).toBeUndefined()
})

test('a wrong value of a variable is reported with the variable’s name', async () => {
  await expect(load({}, { PORT: 'high' })).rejects.toThrow(
    'The configuration is not valid: `server.port` is "high", but must be a whole number from 0 to 65535. It comes from the environment variable PORT.',
  )
})

test('.env fills in what the environment does not say', async () => {
  const files = { '.env': 'LANGO_APP=dotenv\nOPENAI_API_KEY="sk-from-dotenv"\nPORT=1\n' }
  const { config, env, model } = await load(files, { PORT: '2' })
  expect(config).toMatchObject({ app: 'dotenv', server: { port: 2 } })
  expect(env.OPENAI_API_KEY).toBe('sk-from-dotenv')
  expect(model).toBe('openai/gpt-5.2')
})

test.each([
  ['.env', 'a link to a device', (file: string) => symlink('/dev/zero', file)],
  ['.env', 'a pipe', (file: string) => run('mkfifo', [file])],
  ['lango.config.json', 'a link to a device', (file: string) => symlink('/dev/zero', file)],
  ['lango.config.yaml', 'a pipe', (file: string) => run('mkfifo', [file])],
  ['lango.config.mjs', 'a pipe', (file: string) => run('mkfifo', [file])],
  ['agent.mjs', 'a folder', (file: string) => mkdir(file)],
])('the file %s that is %s is refused and not read', async (name, _kind, make) => {
  const cwd = await temporaryFolder()
  const file = join(cwd, name)
  await make(file)
  const words = `${file} is not a regular file, and is not read. Remove it, or put a file in its place.`
  await expect(folderNeeds({ cwd, env: {} })).rejects.toThrow(words)
  await expect(loadConfig({ cwd, env: {} })).rejects.toThrow(words)
})

test('.env reaches the process itself when no other environment was given, and overwrites nothing', async () => {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, '.env'), 'LANGO_APP=dotenv\nLANGO_TEST_ONLY=new\n')
  const script = `
      const { loadConfig } = await import(${JSON.stringify(new URL('../../src/config/load-config.ts', import.meta.url).href)})
      const { config } = await loadConfig({ cwd: ${JSON.stringify(cwd)} })
      console.log(JSON.stringify([config.app, process.env.LANGO_TEST_ONLY, process.env.LANGO_APP]))
    `
  const { stdout } = await run(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    cwd: new URL('../..', import.meta.url),
    env: { ...process.env, LANGO_APP: 'process' },
  })
  expect(JSON.parse(stdout)).toEqual(['process', 'new', 'process'])
})

test('variables in texts are filled in, with defaults, as the kind of value that the key takes', async () => {
  const text = [
    'app: my-${STAGE:-dev}',
    'agent:',
    '  instruction: "Write $${HOME} and {name} and ${1x}"',
    '  multiAgent: ${MANY}',
    'server:',
    '  port: ${MY_PORT:-8080}',
    'providers:',
    '  openai:',
    '    apiKey: ${KEY}',
  ].join('\n')
  const { config } = await load({ 'lango.config.yaml': text }, { MANY: 'true', KEY: '12345', STAGE: '' })
  expect(config.app).toBe('my-dev')
  expect(config.agent).toMatchObject({
    instruction: 'Write ${HOME} and {name} and ${1x}',
    multiAgent: true,
  })
  expect(config.server.port).toBe(8080)
  expect(config.providers.openai).toEqual({ type: 'openai', apiKey: '12345' })
})

test('variables in texts of tools that were made in code are left alone', async () => {
  const program =
    'export default { agent: { tools: [{ name: "x", description: "${NOT_SET}", parameters: {}, execute() {} }] } }'
  const { config } = await load({ 'lango.config.mjs': program })
  expect(config.agent?.tools).toMatchObject([{ description: '${NOT_SET}' }])
})

test.each([
  [
    'the file’s',
    { 'lango.config.json': '{ "agent": { "model": "groq/x" } }' },
    { OPENAI_API_KEY: 'k' },
    'groq/x',
  ],
  ['LANGO_MODEL', {}, { LANGO_MODEL: 'ollama/q', OPENAI_API_KEY: 'k' }, 'ollama/q'],
  [
    'a configured provider with a key',
    { 'lango.config.json': '{ "providers": { "work": { "type": "anthropic", "apiKey": "k" } } }' },
    { OPENAI_API_KEY: 'k' },
    'work/claude-sonnet-4-6',
  ],
  [
    'the first provider whose key is set',
    {},
    { ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: 'k' },
    'openai/gpt-5.2',
  ],
  ['Google’s other variable', {}, { GOOGLE_API_KEY: 'k' }, 'gemini/gemini-3.5-flash'],
  ['the demo', {}, {}, 'demo/demo'],
])('the default model is %s', async (_name, files, env, model) => {
  const loaded = await load(files as Record<string, string>, env as Record<string, string>)
  expect(loaded.model).toBe(model)
  expect(loaded.config.agent?.model).toBe(model)
})

const agent = 'export const rootAgent = { name: "from-code", async *runAsync() {} }'

test('agent.ts is used when the configuration has no agent, and keeps its own model', async () => {
  const { config, agentFile, cwd, model } = await load(
    { 'agent.mjs': agent },
    { LANGO_MODEL: 'openai/gpt-5.2' },
  )
  expect(agentFile).toBe(join(cwd, 'agent.mjs'))
  expect(config.agent).toBeUndefined()
  expect(model).toBe('openai/gpt-5.2')
  expect(await loadRootAgent(agentFile ?? '')).toMatchObject({ name: 'from-code' })
})

test('agent.ts is not read when the configuration has an agent', async () => {
  const files = { 'agent.mjs': agent, 'lango.config.yaml': 'agent:\n  name: configured' }
  expect(await load(files)).not.toHaveProperty('agentFile')
})

test.each([
  ['agent.ts', 'const name: string = "x"\nexport const rootAgent = { name }'],
  ['agent.mjs', 'export const app = { rootAgent: { name: "x" } }'],
  ['agent.mjs', 'export const rootApp = { rootAgent: { name: "x" } }'],
  ['agent.mjs', 'export default { rootAgent: { name: "x" } }'],
  ['agent.js', 'exports.rootAgent = { name: "x" }'],
])('the agent of a folder may be in %s: %s', async (name, text) => {
  const { agentFile = '' } = await load({ [name]: text })
  expect(await loadRootAgent(agentFile)).toEqual({ name: 'x' })
})

const adk = "import { App, LlmAgent, Workflow, node } from '@google/adk'\n"
const made = "new LlmAgent({ name: 'x' })"

test.each([
  ['the default export', `${adk}export default ${made}`],
  [
    'a workflow as the default export',
    `${adk}export default new Workflow({ name: 'x', edges: [['START', node(() => 1, { name: 'n' })]] })`,
  ],
  [
    'the only agent, under another name',
    `${adk}export const step = node(() => 1, { name: 'n' })\nexport const helper = ${made}`,
  ],
  ['one agent under two names', `${adk}export const helper = ${made}\nexport { helper as clerk }`],
])('agent.ts may export its agent as %s', async (_what, text) => {
  const { agentFile = '' } = await load({ 'agent.mjs': text })
  expect(await loadRootAgent(agentFile)).toMatchObject({ name: 'x' })
})

test.each([
  ['default', `export default new App({ name: 'desk', rootAgent })`],
  ['other', `export const desk = new App({ name: 'desk', rootAgent })`],
])(
  'an app in the %s export of agent.ts wins over a bare agent: its plugins are used',
  async (_where, text) => {
    const { agentFile = '' } = await load({ 'agent.mjs': `${adk}export const rootAgent = ${made}\n${text}` })
    expect(await loadRootAgent(agentFile)).toMatchObject({ name: 'desk', plugins: [] })
  },
)

test('agent.ts with several agents and no root is refused with their names', async () => {
  const text = `${adk}export const one = ${made}\nexport const two = new LlmAgent({ name: 'y' })`
  const { agentFile = '' } = await load({ 'agent.mjs': text })
  await expect(loadRootAgent(agentFile)).rejects.toThrow(/exports one and two, and none of them as its root/)
})

test('agent.ts without an agent is refused with that reason', async () => {
  const { agentFile = '' } = await load({ 'agent.mjs': 'export const agent = {}' })
  await expect(loadRootAgent(agentFile)).rejects.toThrow(
    /agent\.mjs exports no agent\. Export it as `rootAgent`/,
  )
})

test('paths in a file are relative to its folder, those of the environment to the working folder', async () => {
  const text = 'store: sqlite:./data/a.db?sync=normal\nlog:\n  file: a.log\ntools:\n  workspace: work'
  const { config, cwd } = await load({ 'lango.config.yaml': text }, { LANGO_LOG_FILE: 'b.log' })
  expect(config.store).toBe(`sqlite:${join(cwd, 'data/a.db')}?sync=normal`)
  expect(config.tools.workspace).toBe(join(cwd, 'work'))
  expect(config.log.file).toBe(join(cwd, 'b.log'))
})

test('defineConfig returns its object, typed', () => {
  const config = defineConfig({ app: 'mine', agent: { model: 'demo/demo', tools: ['read_file'] } })
  const input: LangoConfigInput = config
  expect(input.agent?.model).toBe('demo/demo')
})

test('a printed configuration shows no key, token, header, variable or password', async () => {
  const secrets = [
    'key-of-openai',
    'header-value',
    'a-token-of-the-server',
    'env-value',
    'pass-word',
    'q-secret',
  ]
  const overrides: LangoConfigInput = {
    store: 'postgres://ann:pass-word@db/lango',
    providers: { openai: { apiKey: 'key-of-openai', headers: { 'X-Team': 'header-value' } } },
    server: { tokens: ['a-token-of-the-server'] },
    mcpServers: {
      files: { command: 'npx', env: { MODE: 'env-value' } },
      web: { url: 'https://mcp.example.com/?api_key=q-secret', headers: { A: 'header-value' } },
    },
    telemetry: { endpoint: 'http://user:pass-word@collector:4318', headers: { B: 'header-value' } },
  }
  const { config } = await load({}, {}, { overrides })
  const shown = JSON.stringify(redact(config))
  for (const secret of secrets) expect(shown).not.toContain(secret)
  expect(shown).toContain('postgres://ann:[hidden]@db/lango')
  expect(shown).toContain('18789')
})

test('tokens with their users are hidden wherever the configuration is shown', async () => {
  const overrides: LangoConfigInput = { server: { tokens: { 'a-token-that-is-long': 'ann' } } }
  const { config, sources } = await load({}, {}, { overrides })
  expect(config.server.tokens).toEqual({ 'a-token-that-is-long': 'ann' })
  expect(JSON.stringify([redact(config), sources])).not.toContain('a-token-that-is-long')
})

test('the loader is imported without Zod and YAML', async () => {
  const hook = new URL('../providers/list-loaded-modules.mjs', import.meta.url)
  const loader = pathToFileURL(new URL('../../src/config/load-config.ts', import.meta.url).pathname).href
  const script = `await import(${JSON.stringify(loader)})`
  const { stdout } = await run(
    process.execPath,
    ['--import', 'tsx', '--import', hook.href, '--input-type=module', '-e', script],
    { cwd: new URL('../..', import.meta.url) },
  )
  expect(stdout).toContain('src/config/load-config.ts')
  expect(stdout).not.toMatch(/node_modules\/(zod|yaml)\//)
})

test.each([undefined, process.env])('a variable that a configuration in code sets counts, %#', async env => {
  onTestFinished(() => {
    delete process.env.LANGO_APP
  })
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, 'lango.config.mjs'), "process.env.LANGO_APP = 'by-code'\nexport default {}\n")
  const loaded = await loadConfig({ cwd, env })
  expect(loaded.config.app).toBe('by-code')
  expect(loaded.env).toBe(process.env)
})
