import { expect, test } from 'vitest'
import { parseConfig } from './parse-config.js'
import { namedTools, resolveTools } from './resolve-tools.js'

const AVAILABLE = ['read_file', 'files_list', 'files_get'].map(name => ({ name }))

function agentOf(agent: object) {
  const { agent: parsed } = parseConfig({ agent })
  if (!parsed) throw new TypeError('no agent')
  return parsed
}

const names = (tools: readonly object[]) => tools.map(tool => Reflect.get(tool, 'name'))

test('a root agent without a list of tools gets all tools, sub-agents none', () => {
  const resolved = resolveTools(agentOf({ subAgents: [{ name: 'a' }] }), AVAILABLE)
  expect(names(resolved.tools)).toEqual(['read_file', 'files_list', 'files_get'])
  expect(resolved.subAgents[0]?.tools).toEqual([])
})

test('names, prefixes and tools made in code are resolved in order', () => {
  const own = { name: 'own', parameters: {}, execute() {} }
  const agent = agentOf({ tools: ['files_*', own], subAgents: [{ name: 'a', tools: ['read_file'] }] })
  const resolved = resolveTools(agent, AVAILABLE)
  expect(names(resolved.tools)).toEqual(['files_list', 'files_get', 'own'])
  expect(names(resolved.subAgents[0]?.tools ?? [])).toEqual(['read_file'])
  expect(namedTools(agent)).toEqual(['files_*', 'read_file'])
})

test.each([
  [{ tools: [] }, []],
  [{}, ['read_file', 'files_list', 'files_get']],
])('the tools %j resolve to %j', (agent, expected) => {
  expect(names(resolveTools(agentOf(agent), AVAILABLE).tools)).toEqual(expected)
})

test.each([
  [
    { tools: ['readfile'] },
    '`agent.tools[0]` is "readfile", but no such tool exists. Did you mean "read_file"?',
  ],
  [
    { subAgents: [{ name: 'a', tools: ['git_*'] }] },
    '`agent.subAgents[0].tools[0]` is "git_*", but no such tool exists. Known tools: read_file, files_list, files_get.',
  ],
])('a tool that does not exist is reported: %j', (agent, message) => {
  expect(() => resolveTools(agentOf(agent), AVAILABLE)).toThrow(message)
})
