// Names that every plain object inherits are unknown keys of a configuration, or ordinary names in it.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/load-config.js'
import { describeModel } from '../../src/provider/model-catalog.js'
import { listModels, listProviders } from '../../src/runtime/models.js'
import { failuresByName, withKey } from '../support/prototype-names.js'
import { temporaryFolder } from '../support/temporary-folder.js'

async function load(kind: 'json' | 'yaml', data: unknown, env: Record<string, string> = {}) {
  const cwd = await temporaryFolder()
  const text = kind === 'json' ? JSON.stringify(data) : stringify(data)
  await writeFile(join(cwd, `lango.config.${kind}`), text)
  return loadConfig({ cwd, env })
}

test.each(['json', 'yaml'] as const)(
  'an inherited name is an unknown key at every place of a %s file',
  async kind => {
    const check = async (name: string) => {
      for (const [path, data] of [
        [name, withKey(name, 'x')],
        [`agent.${name}`, { agent: withKey(name, 1) }],
        [`server.${name}`, { server: withKey(name, {}) }],
        [`log.${name}`, { log: withKey(name, `\${HOME}`) }],
      ] as const) {
        await expect(load(kind, data, { HOME: 'y' })).rejects.toMatchObject({
          code: 'invalid-config',
          message: expect.stringContaining(`\`${path}\` (`),
          details: { problems: [{ path, message: expect.stringContaining('is not a known key') }] },
        })
      }
    }
    expect(await failuresByName(check)).toEqual([])
  },
)

test.each(['json', 'yaml'] as const)(
  'an inherited name is a provider, a model and a header in a %s file, or refused',
  async kind => {
    const check = async (name: string) => {
      const provider = { type: 'openai', apiKey: 'k', headers: withKey(name, 'h'), models: withKey(name, {}) }
      const loading = load(kind, { agent: { model: 'demo/demo' }, providers: withKey(name, provider) })
      if (name === '__proto__') {
        await expect(loading).rejects.toMatchObject({
          message: expect.stringContaining('`providers.__proto__`'),
        })
        const headers = { openai: { headers: withKey(name, 'h') } }
        await expect(load(kind, { providers: headers })).rejects.toMatchObject({
          message: expect.stringContaining('`providers.openai.headers.__proto__`'),
        })
        return
      }
      const { config } = await loading
      expect(Object.entries(config.providers)).toMatchObject([
        [name, { type: 'openai', headers: { [name]: 'h' } }],
      ])
      const models = listModels({ providers: config.providers as never, env: {} })
      expect(models.map(({ reference }) => reference)).toContain(`${name}/${name}`)
    }
    expect(await failuresByName(check)).toEqual([])
  },
)

test.each(['json', 'yaml'] as const)(
  'an inherited name in a %s file is a variable that is not set',
  async kind => {
    const check = async (name: string) => {
      await expect(load(kind, { app: `\${${name}}` })).rejects.toMatchObject({
        code: 'invalid-config',
        message: expect.stringContaining(name),
      })
      expect((await load(kind, { app: `\${${name}:-plain}` })).config.app).toBe('plain')
      expect((await load(kind, { app: `\${${name}}` }, withKey(name, 'set'))).config.app).toBe('set')
    }
    expect(await failuresByName(check)).toEqual([])
  },
)

test('an inherited name is an unknown key of the options of loadConfig', async () => {
  const cwd = await temporaryFolder()
  const check = (name: string) =>
    expect(loadConfig({ cwd, env: {}, overrides: withKey(name, 1) })).rejects.toMatchObject({
      code: 'invalid-config',
      message: expect.stringContaining(`\`${name}\` (1) is not a known key`),
    })
  expect(await failuresByName(check)).toEqual([])
})

test('an inherited name is a model without settings, and a type or preset that nobody knows', async () => {
  const check = (name: string) => {
    expect(describeModel(name, name, { models: {} })).toMatchObject({
      id: name,
      contextWindow: 32_768,
      outputLimit: 4096,
      known: false,
    })
    const providers = withKey(name, {
      type: 'openai-compatible' as const,
      baseUrl: 'http://127.0.0.1:1',
      preset: name,
    })
    const found = listProviders({ providers, env: {} }).find(({ provider }) => provider === name)
    expect(found).toEqual({ provider: name, keyPresent: true })
  }
  expect(await failuresByName(check)).toEqual([])
})
