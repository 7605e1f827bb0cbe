import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isLocalStore, sortSettings } from '../../src/config/harmless-settings.js'
import { loadConfig } from '../../src/config/load-config.js'
import { temporaryFolder } from '../support/temporary-folder.js'

test.each([
  { app: 'shop', agent: { name: 'a', model: 'openai/gpt-5.2', instruction: 'Be brief.', maxTurns: 3 } },
  { store: 'sqlite:./data/shop.db', history: { maxMessages: 5 }, log: { level: 'debug' } },
  { store: 'memory:', server: { port: 0, host: '127.0.0.1' }, telemetry: { serviceName: 'x' } },
  { tools: { builtIn: ['read_file'], workspace: './src', needsApproval: { read_file: true } } },
  { agent: { name: 'a', tools: ['current_time'], subAgents: [{ name: 'b', tools: ['list_files'] }] } },
])('the setting %j needs no trust', async config => {
  const folder = await temporaryFolder()
  expect(sortSettings(config, { folder })).toEqual({ harmless: config, guarded: [] })
})

test.each([
  [{ store: 'postgres://db/x' }, 'store'],
  [{ store: 'sqlite:/etc/x.db' }, 'store'],
  [{ store: 'sqlite:../x.db' }, 'store'],
  [{ store: 'sqlite:%2e%2e%2fx.db' }, 'store'],
  [{ store: 'sqlite:..\\x.db' }, 'store'],
  [{ store: 'sqlite:file:x.db?vfs=evil' }, 'store'],
  [{ providers: { openai: {} } }, 'providers'],
  [{ mcpServers: { a: { command: 'x' } } }, 'mcpServers'],
  [{ agent: { instruction: `\${HOME}` } }, 'agent.instruction'],
  [{ agent: `\${HOME}` }, 'agent'],
  [{ agent: { tools: ['read_file', 'fetch_url'] } }, 'agent.tools'],
  [{ agent: { subAgents: [{ name: 'b', tools: ['run_command'] }] } }, 'agent.subAgents.0.tools'],
  [{ tools: { builtIn: ['run_command'] } }, 'tools.builtIn'],
  [{ tools: { workspace: '..' } }, 'tools.workspace'],
  [{ tools: { workspace: '~' } }, 'tools.workspace'],
  [{ tools: { needsApproval: { run_command: false } } }, 'tools.needsApproval.run_command'],
  [{ tools: { sandbox: 'off' } }, 'tools.sandbox'],
  [{ tools: { env: { A: 'b' } } }, 'tools.env'],
  [{ tools: { allowPrivateNetwork: true } }, 'tools.allowPrivateNetwork'],
  [{ server: { host: '0.0.0.0' } }, 'server.host'],
  [{ server: { tokens: ['known-to-the-attacker'] } }, 'server.tokens'],
  [{ server: { allowedOrigins: ['https://evil.example'] } }, 'server.allowedOrigins'],
  [{ server: { allowedHosts: ['evil.example'] } }, 'server.allowedHosts'],
  [{ log: { file: '../x.log' } }, 'log.file'],
  [{ log: { content: true } }, 'log.content'],
  [{ telemetry: { endpoint: 'http://x' } }, 'telemetry.endpoint'],
  [{ telemetry: { content: true } }, 'telemetry.content'],
  [JSON.parse('{ "__proto__": { "store": "postgres://x" } }'), '__proto__'],
  [{ constructor: { a: 1 } }, 'constructor'],
])('the setting %j needs trust for %s, which is left out', async (config, key) => {
  const folder = await temporaryFolder()
  const { harmless, guarded } = sortSettings(config, { folder })
  expect(guarded.map(({ path }) => path.join('.'))).toEqual([key])
  expect(sortSettings(harmless, { folder }).guarded).toEqual([])
})

test('a link leads a store out of the folder, also when its target does not exist yet', async () => {
  const root = await temporaryFolder()
  const folder = join(root, 'project')
  await mkdir(folder)
  await symlink('../elsewhere', join(folder, 'data'))
  await symlink('../new.db', join(folder, 'lango.db'))
  await symlink('loop.db', join(folder, 'loop.db'))
  expect(isLocalStore('sqlite:./data/x.db', folder)).toBe(false)
  expect(isLocalStore('sqlite:./lango.db', folder)).toBe(false)
  expect(isLocalStore('sqlite:./other/x.db', folder)).toBe(true)
  expect(isLocalStore('sqlite:./other/x.db?create=1&sync=normal', folder)).toBe(true)
  expect(isLocalStore('sqlite:./other/x.db?vfs=x', folder)).toBe(false)
})

test('loadConfig with `trusted: false` keeps harmless keys, runs nothing, and still reports mistakes', async () => {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, '.env'), 'LANGO_APP=evil\n')
  await writeFile(join(cwd, 'agent.mjs'), "throw new Error('it ran')\n")
  const file = join(cwd, 'lango.config.json')
  await writeFile(file, JSON.stringify({ app: 'shop', providers: { openai: { apiKey: `\${NO_SUCH_KEY}` } } }))
  const { config, agentFile, env } = await loadConfig({ cwd, env: {}, trusted: false })
  expect(config).toMatchObject({ app: 'shop', providers: {} })
  expect({ agentFile, env }).toEqual({ agentFile: undefined, env: {} })
  await writeFile(file, JSON.stringify({ sotre: 'memory:', providers: {} }))
  await expect(loadConfig({ cwd, env: {}, trusted: false })).rejects.toThrow('Did you mean `store`?')
  await writeFile(join(cwd, 'lango.config.json'), '{}')
  const trusted = await loadConfig({ cwd, env: {} })
  expect(trusted.agentFile).toBe(join(cwd, 'agent.mjs'))
  expect(trusted.config.app).toBe('evil')
})

test('a secret outside its own fields is an error that names the key', async () => {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, 'lango.config.yaml'), `log: { file: "./\${OPENAI_API_KEY}.log" }\n`)
  await expect(loadConfig({ cwd, env: { OPENAI_API_KEY: 'sk-1' } })).rejects.toThrow(
    '`log.file` refers to OPENAI_API_KEY, which is a secret by its name',
  )
})
