import { expect, test } from 'vitest'
import { type LoadedConfig, loadConfig } from '../config/load-config.js'

import { runtimeOptions } from './open-runtime.js'

async function loadedWith(rootAgent: object | undefined, model: string): Promise<LoadedConfig> {
  const loaded = await loadConfig({ cwd: import.meta.dirname, env: {}, overrides: { store: 'memory:' } })
  const { agent, ...config } = loaded.config
  const own = rootAgent ? { rootAgent } : { agent: { name: 'a', ...agent, model } }
  return { ...loaded, config: { ...config, ...own } as LoadedConfig['config'], model }
}

test('a model that was asked for replaces that of an agent in the configuration, in every command', async () => {
  const rootAgent = { subAgents: [], runAsync: () => {} }
  expect((await runtimeOptions(await loadedWith(rootAgent, 'demo/demo'))).model).toBe('demo/demo')
  const asData = await runtimeOptions(await loadedWith(undefined, 'demo/demo'))
  expect(asData).not.toHaveProperty('model')
  expect(asData.agent?.model).toBe('demo/demo')
})

test('a command deletes run events as the server does, unless an option says otherwise', async () => {
  const loaded = await loadedWith(undefined, 'demo/demo')
  expect((await runtimeOptions(loaded)).retention).toEqual({ runsDays: 30 })
  const config = { ...loaded.config, retention: { runsDays: 7, sessionsDays: 90 } }
  expect((await runtimeOptions({ ...loaded, config })).retention).toEqual({ runsDays: 7, sessionsDays: 90 })
})
