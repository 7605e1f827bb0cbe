// Tools that run at once: functions, classes, toolsets, agents.
import { AgentTool, BaseTool, BaseToolset, FunctionTool, SkillToolset } from '@google/adk'
import { z } from 'zod'
import { calls, type Kit, type ParityCase } from './parity.js'

/** One agent with one tool, which is called once. */
export const one = (
  feature: string,
  tool: (kit: Kit) => unknown,
  call = calls('look', { text: 'x' }),
): ParityCase => ({
  feature,
  build: kit => kit.agent('root', { tools: [tool(kit)] as never }),
  scripts: { root: [call, { text: 'Done.' }] },
})

const returning = (value: unknown): ParityCase =>
  one('Function tools', ({ tool }) => tool('look', () => value))

/** A tool of one's own class. */
class Shout extends BaseTool {
  override _getDeclaration() {
    const parameters = { type: 'OBJECT', properties: { word: { type: 'STRING' } }, required: ['word'] }
    return { name: this.name, description: this.description, parameters } as never
  }

  override async runAsync({ args }: { args: Record<string, unknown> }): Promise<unknown> {
    return { shouted: String(args.word).toUpperCase() }
  }
}

class Kitbag extends BaseToolset {
  readonly #tools: BaseTool[]

  constructor(tools: BaseTool[], filter: string[] = []) {
    super(filter)
    this.#tools = tools
  }

  override async getTools(): Promise<BaseTool[]> {
    return this.#tools.filter(
      ({ name }) => this.toolFilter.length === 0 || (this.toolFilter as string[]).includes(name),
    )
  }

  override async close(): Promise<void> {}
}

const inner = ({ agent }: Kit, options: object = {}) =>
  agent('inner', { description: 'Works inside.', ...options })

export const TOOLS: Readonly<Record<string, ParityCase>> = {
  'a function': returning({ found: 1 }),
  'a function that returns a text': returning('a text'),
  'a function that returns a list': returning([1, 2]),
  'a function that returns null': returning(null),
  'a function that returns a number': returning(7),
  'a function that returns a date, a map and a big number': returning({
    at: new Date(0),
    map: new Map([['a', 1]]),
    big: 10n,
  }),
  'a function that throws': one('Function tools', ({ tool }) =>
    tool('look', () => {
      throw new Error('broken')
    }),
  ),
  'a function without parameters': one(
    'Function tools',
    ({ journal }) =>
      new FunctionTool({ name: 'look', description: 'Looks.', execute: () => void journal.push('looked') }),
    calls('look'),
  ),
  'arguments that the schema refuses': one(
    'Function tools',
    ({ journal }) =>
      new FunctionTool({
        name: 'look',
        description: 'Looks.',
        parameters: z.object({ n: z.number() }),
        execute: ({ n }) => void journal.push(`n ${n}`),
      }),
    calls('look', { n: 'seven' }),
  ),
  'a schema of every kind': one(
    'Function tools',
    () =>
      new FunctionTool({
        name: 'look',
        description: 'Looks.',
        parameters: z.object({
          kind: z.enum(['a', 'b']).describe('The kind.'),
          sizes: z.array(z.number().int().min(1)).optional(),
          place: z.object({ city: z.string(), zip: z.string().nullable() }),
          either: z.union([z.string(), z.number()]),
        }),
        execute: args => args,
      }),
    calls('look', { kind: 'a', place: { city: 'Rome', zip: null }, either: 3 }),
  ),
  'two calls at once': {
    feature: 'Parallel calls',
    build: ({ agent, tool }) => agent('root', { tools: [tool('look'), tool('note')] }),
    scripts: {
      root: [{ toolCalls: [{ name: 'look' }, { name: 'note', args: { text: 'y' } }] }, { text: 'Both.' }],
    },
  },
  'one tool twice at once': {
    feature: 'Parallel calls',
    build: ({ agent, tool }) => agent('root', { tools: [tool('look', (_context, { text }) => ({ text }))] }),
    scripts: {
      root: [{ toolCalls: [1, 2].map(n => ({ name: 'look', args: { text: `${n}` } })) }, { text: 'Twice.' }],
    },
  },
  'two calls at once, one throws': {
    feature: 'Parallel calls',
    build: ({ agent, tool }) =>
      agent('root', {
        tools: [
          tool('look'),
          tool('note', () => {
            throw new Error('broken')
          }),
        ],
      }),
    scripts: { root: [{ toolCalls: [{ name: 'look' }, { name: 'note' }] }, { text: 'Half.' }] },
  },
  'parallel calls that set state': {
    feature: 'Parallel calls',
    build: ({ agent, tool }) =>
      agent('root', { tools: ['a', 'b'].map(name => tool(name, ({ state }) => state.set(name, 1))) }),
    scripts: { root: [{ toolCalls: [{ name: 'a' }, { name: 'b' }] }, { text: 'Set.' }] },
  },
  'text before a call': {
    feature: 'Function tools',
    build: ({ agent, tool }) => agent('root', { tools: [tool('look')] }),
    scripts: { root: [{ text: 'Let me look.', ...calls('look') }, { text: 'Seen.' }] },
  },
  'calls in several turns': {
    feature: 'Function tools',
    build: ({ agent, tool }) => agent('root', { tools: [tool('look')] }),
    scripts: { root: [calls('look'), { text: '1' }, calls('look', { text: 'b' }), { text: '2' }] },
    turns: ['a', 'b', 'c'],
  },
  'five calls one after another': {
    feature: 'Function tools',
    build: ({ agent, tool }) => agent('root', { tools: [tool('look')] }),
    scripts: { root: [...[1, 2, 3, 4, 5].map(n => calls('look', { text: `${n}` })), { text: 'Five.' }] },
  },
  'a tool of a class of one’s own': one(
    'Function tools',
    () => new Shout({ name: 'shout', description: 'Shouts.' }),
    calls('shout', { word: 'hey' }),
  ),
  'a toolset': {
    feature: 'Toolsets',
    build: ({ agent, tool }) => agent('root', { tools: [new Kitbag([tool('look'), tool('note')])] }),
    scripts: { root: [calls('note'), { text: 'Noted.' }] },
  },
  'a toolset with a filter': {
    feature: 'Toolsets',
    build: ({ agent, tool }) =>
      agent('root', { tools: [new Kitbag([tool('look'), tool('note')], ['look'])] }),
    scripts: { root: [calls('look'), { text: 'Seen.' }] },
  },
  skills: {
    feature: 'Toolsets',
    build: ({ agent }) => {
      const skill = {
        frontmatter: { name: 'tides', description: 'Knows tides.' },
        instructions: 'High at noon.',
      }
      return agent('root', { tools: [new SkillToolset([skill])] })
    },
    scripts: { root: [calls('load_skill', { skill_name: 'tides', name: 'tides' }), { text: 'At noon.' }] },
  },
  'an agent as a tool': {
    feature: 'Agents as tools',
    build: kit => kit.agent('root', { tools: [new AgentTool({ agent: inner(kit) })] }),
    scripts: {
      root: [calls('inner', { request: 'help' }), { text: 'Done.' }],
      inner: [{ text: 'From inside.' }],
    },
  },
  'an agent as a tool, whose answer is the answer': {
    feature: 'Agents as tools',
    build: kit =>
      kit.agent('root', { tools: [new AgentTool({ agent: inner(kit), skipSummarization: true })] }),
    scripts: { root: [calls('inner', { request: 'help' })], inner: [{ text: 'From inside.' }] },
  },
  'an agent as a tool, with tools and state': {
    feature: 'Agents as tools',
    build: kit =>
      kit.agent('root', {
        tools: [
          new AgentTool({
            agent: inner(kit, {
              outputKey: 'found',
              tools: [kit.tool('dig', ({ state }) => state.set('dug', 1))],
            }),
          }),
        ],
      }),
    scripts: {
      root: [calls('inner', { request: 'dig' }), { text: 'Done.' }],
      inner: [calls('dig'), { text: 'Gold.' }],
    },
  },
  'an agent as a tool, twice in one session': {
    feature: 'Agents as tools',
    build: kit => kit.agent('root', { tools: [new AgentTool({ agent: inner(kit) })] }),
    scripts: {
      root: [
        calls('inner', { request: 'a' }),
        { text: '1' },
        calls('inner', { request: 'b' }),
        { text: '2' },
      ],
      inner: [{ text: 'A' }, { text: 'B' }],
    },
    turns: ['a', 'b'],
  },
  'agents as tools inside agents as tools': {
    feature: 'Agents as tools',
    build: kit => {
      const deepest = kit.agent('deepest', { description: 'Deepest.' })
      return kit.agent('root', {
        tools: [new AgentTool({ agent: inner(kit, { tools: [new AgentTool({ agent: deepest })] }) })],
      })
    },
    scripts: {
      root: [calls('inner', { request: 'a' }), { text: 'Up.' }],
      inner: [calls('deepest', { request: 'b' }), { text: 'Middle.' }],
      deepest: [{ text: 'Bottom.' }],
    },
  },
  'an agent as a tool, with schemas': {
    feature: 'Agents as tools',
    build: kit =>
      kit.agent('root', {
        tools: [
          new AgentTool({
            agent: inner(kit, {
              inputSchema: z.object({ city: z.string() }),
              outputSchema: z.object({ size: z.number() }),
            }),
          }),
        ],
      }),
    scripts: { root: [calls('inner', { city: 'Rome' }), { text: 'Done.' }], inner: [{ text: '{"size":3}' }] },
  },
}
