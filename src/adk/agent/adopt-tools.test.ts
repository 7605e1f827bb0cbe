import { expect, test } from 'vitest'
import { z } from 'zod'
import { FunctionTool, LlmAgent } from '../sdk.js'
import { adoptTools } from './adopt-tools.js'

const OPTIONS = { name: 'look', description: 'Looks somewhere', execute: () => 'found' }

/** A tool of an agent that was adopted, and an equal one that was not. */
function twoTools(options: object): { adopted: FunctionTool; plain: FunctionTool } {
  const [adopted, plain] = [0, 1].map(() => new FunctionTool({ ...OPTIONS, ...options })) as [
    FunctionTool,
    FunctionTool,
  ]
  adoptTools(new LlmAgent({ name: 'agent', tools: [adopted] }), () => undefined)
  return { adopted, plain }
}

test.each([
  [
    'a Zod schema',
    { parameters: z.object({ place: z.string().describe('Where'), depth: z.number().max(3) }) },
  ],
  [
    'a nested Zod schema',
    { parameters: z.object({ list: z.array(z.object({ at: z.enum(['a', 'b']) })).min(1) }) },
  ],
  ['a schema of Gemini', { parameters: { type: 'OBJECT', properties: { place: { type: 'STRING' } } } }],
  ['no schema', {}],
])('the declaration of a tool with %s is that of ADK, every time', (_name, options) => {
  const { adopted, plain } = twoTools(options)
  const expected = JSON.stringify(plain._getDeclaration())
  for (let time = 0; time < 3; time++) expect(JSON.stringify(adopted._getDeclaration())).toBe(expected)
})

test('a declaration that is changed does not change the next one', () => {
  const { adopted, plain } = twoTools({ parameters: z.object({ place: z.string() }) })
  for (let time = 0; time < 2; time++) {
    const { properties } = adopted._getDeclaration().parameters ?? {}
    if (properties) properties.place = { description: 'changed' }
  }
  expect(JSON.stringify(adopted._getDeclaration())).toBe(JSON.stringify(plain._getDeclaration()))
})

test('a description or schema that is replaced is declared', () => {
  const { adopted } = twoTools({ parameters: z.object({ place: z.string() }) })
  adopted._getDeclaration()
  Object.assign(adopted, { description: 'Looks elsewhere', parameters: z.object({ other: z.string() }) })
  expect(adopted._getDeclaration()).toMatchObject({
    description: 'Looks elsewhere',
    parameters: { properties: { other: { type: 'STRING' } } },
  })
})

test('a tool that declares itself is left as it is', () => {
  class OwnTool extends FunctionTool {
    calls = 0
    override _getDeclaration() {
      this.calls += 1
      return { name: `look${this.calls}`, description: 'Own' }
    }
  }
  const tool = new OwnTool(OPTIONS)
  adoptTools(new LlmAgent({ name: 'agent', tools: [tool] }), () => undefined)
  expect([tool._getDeclaration().name, tool._getDeclaration().name]).toEqual(['look1', 'look2'])
})
