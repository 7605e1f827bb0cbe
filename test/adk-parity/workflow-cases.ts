// Workflows of every kind that ADK has, each with the script of its models. The parity suite runs them in three ways; the
// resume suite cuts them off after each write.
import {
  AgentTool,
  createEvent,
  type Event,
  type FunctionTool,
  JoinNode,
  type LlmAgent,
  type LlmAgentConfig,
  type NodeContext,
  NodeTool,
  node,
  RequestInput,
  type RunnableNode,
  SequentialAgent,
  Workflow,
  WorkflowNode,
} from '@google/adk'
import type { Part } from '@google/genai'
import { z } from 'zod'

/** What a workflow is built with. */
export interface Kit {
  /** Notes an effect: function nodes and tools leave one line per execution. */
  note(line: string): void
  agent(name: string, options?: Partial<LlmAgentConfig>): LlmAgent
  tool(name: string): FunctionTool
  /** A node that notes its execution and returns what the function returns. */
  fn(name: string, act?: (context: NodeContext, input: unknown) => unknown): RunnableNode
}

/** What the model says: text, or names of tools with their arguments. */
export interface Step {
  text?: string
  calls?: readonly { name: string; args?: Record<string, unknown> }[]
}

/** A message of the user; a function gets the stored events. */
export type Turn = string | ((events: readonly Event[]) => Part[])

export interface WorkflowCase {
  build(kit: Kit): RunnableNode
  /** What the model of each agent answers, in order; afterwards it says `Done by <agent>.` */
  scripts?: Readonly<Record<string, readonly Step[]>>
  turns?: readonly Turn[]
  /** Parallel work may end in any order. */
  isUnordered?: boolean
  /** In the runtime, requests of a session extend each other (ADR 0042): what a node says stays before the result. */
  isKeptInOrder?: boolean
  /** Where Lango differs on purpose: why, and its line for a line of ADK's. */
  differs?: { why: string; lines: Readonly<Record<string, string>> }
}

const call = (...names: string[]): Step => ({ calls: names.map(name => ({ name })) })
const say = (text: string): Step => ({ text })
const route = (name: string, output?: unknown) =>
  createEvent({ route: name, ...(output === undefined ? {} : { output }) })

/** The answer to the only open question of a workflow. */
const answer =
  (response: Record<string, unknown>): Turn =>
  events => {
    const calls = events
      .flatMap(({ content }) => content?.parts ?? [])
      .flatMap(part => part.functionCall ?? [])
    const asked = calls.findLast(({ name }) => name === 'adk_request_input')
    return [{ functionResponse: { id: asked?.id ?? '', name: 'adk_request_input', response } }]
  }

const TOOL_NODE = '{"author":"pay","path":"tooled.pay","parts":PARTS,"output":{"done":"pay"}}'
const INPUT = '{"charged":"Ann"}'
const SAID = 'For context: | [charge] said: {"charged":"Ann"}'
const BILLED =
  'root: go | call billing | result billing | FIRST | SECOND | For context: | [scribe] called tool `log` with parameters: {} | For context: | [scribe] tool `log` returned result: {"done":"log"} | For context: | [scribe] said: Written down. | call pay | result pay'

export const WORKFLOW_CASES: Readonly<Record<string, WorkflowCase>> = {
  'a line of functions': {
    build: kit =>
      new Workflow({
        name: 'line',
        edges: [
          [
            'START',
            kit.fn('upper', (_context, input) => String(input).toUpperCase()),
            kit.fn('wrap', (_context, input) => `<${String(input)}>`),
          ],
        ],
      }),
  },
  'a line of agents and functions': {
    build: kit =>
      new Workflow({
        name: 'line',
        edges: [
          [
            'START',
            kit.agent('writer'),
            kit.fn('count', (_context, input) => `${String(input)} (${String(input).length})`),
            kit.agent('editor'),
          ],
        ],
      }),
    scripts: { writer: [say('A draft.')], editor: [say('A better draft.')] },
  },
  'an agent with tools': {
    build: kit =>
      new Workflow({
        name: 'tools',
        edges: [
          ['START', kit.agent('clerk', { tools: [kit.tool('look'), kit.tool('pay'), kit.tool('log')] })],
        ],
      }),
    scripts: { clerk: [call('look'), call('pay', 'log'), say('Paid.')] },
  },
  'agents with tools, one after the other': {
    build: kit =>
      new Workflow({
        name: 'chain',
        edges: [
          [
            'START',
            kit.agent('first', { tools: [kit.tool('pay')] }),
            kit.agent('second', { tools: [kit.tool('send')] }),
          ],
        ],
      }),
    scripts: { first: [call('pay'), say('Paid.')], second: [call('send'), say('Sent.')] },
  },
  'fan-out and join of agents with tools': {
    build: kit => {
      const left = kit.agent('left', { tools: [kit.tool('look')] })
      const right = kit.agent('right', { tools: [kit.tool('find')] })
      const join = new JoinNode({ name: 'join' })
      return new Workflow({
        name: 'fan',
        edges: [
          ['START', left],
          ['START', right],
          [left, join],
          [right, join],
          [join, kit.fn('merge', (_context, input) => JSON.stringify(input))],
        ],
      })
    },
    scripts: { left: [call('look'), say('L')], right: [call('find'), say('R')] },
    isUnordered: true,
    differs: {
      why: 'ADK asks a model again before the result of its tool is stored: the request lacks it.',
      lines: { 'right: go | call find': 'right: go | call find | result find' },
    },
  },
  'fan-out and join of functions': {
    build: kit => {
      const begin = kit.fn('begin', (_context, input) => input)
      const double = node(kit.fn('double', async (_context, input) => `${String(input)}${String(input)}`))
      const reverse = node(kit.fn('reverse', (_context, input) => [...String(input)].reverse().join('')))
      const join = new JoinNode({ name: 'join' })
      return new Workflow({
        name: 'fan',
        edges: [
          ['START', begin],
          [begin, [double, reverse], join, kit.fn('merge', (_context, input) => JSON.stringify(input))],
        ],
      })
    },
    isUnordered: true,
  },
  'conditional routes': {
    build: kit => {
      const triage = node(
        kit.fn('triage', (_context, input) => route(String(input).includes('bug') ? 'bug' : 'praise', input)),
      )
      return new Workflow({
        name: 'routes',
        edges: [
          ['START', triage],
          [triage, { bug: kit.agent('fixer', { tools: [kit.tool('file')] }), praise: kit.agent('thanker') }],
        ],
      })
    },
    turns: ['there is a bug'],
    scripts: { fixer: [call('file'), say('Filed.')] },
  },
  'the default route': {
    build: kit => {
      const triage = node(kit.fn('triage', () => route('unknown', 'x')))
      return new Workflow({
        name: 'routes',
        edges: [
          ['START', triage],
          [
            triage,
            {
              known: kit.fn('known'),
              __DEFAULT__: kit.fn('other', (_context, input) => `other ${String(input)}`),
            },
          ],
        ],
      })
    },
  },
  'a worker per item': {
    build: kit =>
      new Workflow({
        name: 'workers',
        edges: [
          [
            'START',
            kit.fn('split', (_context, input) => String(input).split(' ')),
            node(
              kit.fn('work', (_context, item) => `${String(item)}!`),
              { parallelWorker: true, maxParallelWorkers: 2 },
            ),
            kit.fn('gather', (_context, items) => (items as string[]).join(' ')),
          ],
        ],
      }),
    turns: ['one two three'],
    isUnordered: true,
  },
  'an agent per item': {
    build: kit =>
      new Workflow({
        name: 'workers',
        edges: [
          [
            'START',
            kit.fn('split', (_context, input) => String(input).split(' ')),
            node(kit.agent('worker', { tools: [kit.tool('look')] }), {
              parallelWorker: true,
              maxParallelWorkers: 1,
            }),
            kit.fn('gather', (_context, items) => (items as string[]).join(' ')),
          ],
        ],
      }),
    turns: ['one two'],
    scripts: { worker: [call('look'), say('1'), call('look'), say('2')] },
  },
  'a cycle that a function ends': {
    build: kit => {
      const draft = kit.agent('drafter', { tools: [kit.tool('look')] })
      const review = node(
        kit.fn('review', (context, input) => {
          const count = Number(context.state.get('reviews') ?? 0) + 1
          context.state.set('reviews', count)
          return route(count < 3 ? 'again' : 'good', input)
        }),
      )
      return new Workflow({
        name: 'cycle',
        edges: [
          ['START', draft],
          [draft, review],
          [
            review,
            { again: draft, good: kit.fn('publish', (_context, input) => `Published: ${String(input)}`) },
          ],
        ],
      })
    },
    scripts: { drafter: [call('look'), say('One.'), say('Two.'), call('look'), say('Three.')] },
  },
  'a workflow inside a workflow': {
    build: kit => {
      const inner = new Workflow({
        name: 'inner',
        edges: [
          [
            'START',
            kit.fn('prepare', (_context, input) => `prepared ${String(input)}`),
            kit.agent('helper', { tools: [kit.tool('pay')] }),
          ],
        ],
      })
      return new Workflow({
        name: 'outer',
        edges: [
          [
            'START',
            kit.fn('open', (_context, input) => input),
            inner,
            kit.fn('shut', (_context, input) => `shut ${String(input)}`),
          ],
        ],
      })
    },
    scripts: { helper: [call('pay'), say('Helped.')] },
  },
  'a dynamic entry': {
    build: kit => {
      const helper = kit.agent('helper', { tools: [kit.tool('pay')] })
      const check = kit.fn('check', (_context, input) => `${String(input)} checked`)
      return new Workflow({
        name: 'dynamic',
        dynamicEntry: async (context, input) => {
          const outputs: unknown[] = []
          for (let round = 1; round <= 2; round++) {
            const { output } = await context.runNode(helper, `${String(input)} ${round}`)
            outputs.push((await context.runNode(check, output)).output)
          }
          return outputs.join(', ')
        },
      })
    },
    scripts: { helper: [call('pay'), say('One.'), say('Two.')] },
  },
  'dynamic nodes at once': {
    build: kit => {
      const work = kit.fn('work', async (_context, input) => `${String(input)}!`)
      return new Workflow({
        name: 'dynamic',
        dynamicEntry: async context => {
          const all = await Promise.all(['a', 'b', 'c'].map(item => context.runNode(work, item)))
          return all.map(({ output }) => output).join('')
        },
      })
    },
    isUnordered: true,
  },
  'a function that runs other nodes': {
    build: kit => {
      const helper = kit.agent('helper', { tools: [kit.tool('pay')] })
      const pick = kit.fn('pick', (_context, input) => `picked ${String(input)}`)
      return new Workflow({
        name: 'lead',
        edges: [
          [
            'START',
            async function lead(context: NodeContext, input: unknown) {
              const { output } = await context.runNode(pick, input)
              const done = await context.runNode(helper, output)
              return `lead: ${String(done.output)}`
            },
          ],
        ],
      })
    },
    scripts: { helper: [call('pay'), say('Paid.')] },
  },
  'a tool as a node': {
    build: kit =>
      new Workflow({
        name: 'tooled',
        edges: [
          [
            'START',
            kit.fn('args', (_context, input) => ({ text: String(input) })),
            kit.tool('pay'),
            kit.fn('read', (_context, input) => JSON.stringify(input)),
          ],
        ],
      }),
    differs: {
      why: 'A result without a call is shown to ADK as a text: ADK would leave it out of every later request.',
      lines: {
        [TOOL_NODE.replace('PARTS', JSON.stringify(['result pay {"done":"pay"}']))]: TOOL_NODE.replace(
          'PARTS',
          JSON.stringify(['[Earlier result of tool `pay`: {"done":"pay"}]']),
        ),
      },
    },
  },
  'a function that throws': {
    build: kit =>
      new Workflow({
        name: 'failing',
        edges: [
          [
            'START',
            kit.agent('writer'),
            kit.fn('explode', () => {
              throw new TypeError('The printer is on fire.')
            }),
            kit.fn('never'),
          ],
        ],
      }),
    scripts: { writer: [say('A draft.')] },
  },
  'a function that is retried': {
    build: kit => {
      const flaky = kit.fn('flaky', context => {
        if (context.attemptCount < 3) throw new TypeError(`attempt ${context.attemptCount} failed`)
        return `attempt ${context.attemptCount}`
      })
      return new Workflow({
        name: 'retrying',
        edges: [
          [
            'START',
            node(flaky, {
              retryConfig: { maxAttempts: 4, initialDelay: 0.001, jitter: 0, exceptions: ['TypeError'] },
            }),
            kit.fn('after', (_context, input) => `after ${String(input)}`),
          ],
        ],
      })
    },
  },
  'an error that is not retried': {
    build: kit => {
      const fatal = kit.fn('fatal', () => {
        throw new RangeError('Too far.')
      })
      return new Workflow({
        name: 'fatal_flow',
        edges: [
          [
            'START',
            node(fatal, { retryConfig: { maxAttempts: 4, initialDelay: 0.001, exceptions: ['TypeError'] } }),
          ],
        ],
      })
    },
  },
  'a question that a function response answers': {
    build: kit => {
      const ask = node(
        kit.fn('ask', () => new RequestInput({ interruptId: 'q-1', message: 'Which colour?' })),
      )
      return new Workflow({
        name: 'asking',
        edges: [
          [
            'START',
            kit.fn('prepare', (_context, input) => input),
            ask,
            kit.fn('paint', (_context, input) => `painted ${JSON.stringify(input)}`),
          ],
        ],
      })
    },
    turns: ['go', answer({ result: 'red' })],
  },
  'a question that the next message answers': {
    build: kit => {
      const ask = node(
        kit.fn(
          'ask',
          context =>
            context.resumeInputs['q-1'] ?? new RequestInput({ interruptId: 'q-1', message: 'Which colour?' }),
        ),
        { rerunOnResume: true },
      )
      return new Workflow({
        name: 'asking',
        edges: [
          [
            'START',
            kit.agent('greeter', { tools: [kit.tool('look')] }),
            ask,
            kit.fn('paint', (_context, input) => `painted ${JSON.stringify(input)}`),
          ],
        ],
      })
    },
    scripts: { greeter: [call('look'), say('Hello.')] },
    turns: ['go', 'blue'],
  },
  'state from node to node': {
    build: kit =>
      new Workflow({
        name: 'stateful',
        edges: [
          [
            'START',
            kit.fn('remember', (context, input) => {
              context.state.set('topic', input)
              context.state.set('temp:scratch', 1)
            }),
            kit.agent('writer', { instruction: 'Write about {topic}.', outputKey: 'draft' }),
            kit.fn(
              'tell',
              context => `${String(context.state.get('topic'))}: ${String(context.state.get('draft'))}`,
            ),
          ],
        ],
      }),
    turns: ['cats'],
    scripts: { writer: [say('Cats sleep.')] },
  },
  'a function that yields several events': {
    build: kit =>
      new Workflow({
        name: 'stream',
        edges: [
          [
            'START',
            node(async function* steps(context: NodeContext) {
              kit.note('steps')
              context.state.set('one', 1)
              yield createEvent({
                author: 'steps',
                content: { role: 'model', parts: [{ text: 'Step one.' }] },
              })
              context.state.set('two', 2)
              yield createEvent({
                author: 'steps',
                content: { role: 'model', parts: [{ text: 'Step two.' }] },
              })
              yield 'all steps'
            }),
            kit.fn('end', (_context, input) => `end of ${String(input)}`),
          ],
        ],
      }),
  },
  'a workflow as a tool': {
    isKeptInOrder: true,
    build: kit => {
      const inner = new Workflow({
        name: 'billing',
        description: 'Bills a customer.',
        inputSchema: z.object({ customer: z.string() }),
        edges: [
          [
            'START',
            kit.fn('charge', (_context, input) => ({ charged: (input as { customer: string }).customer })),
            kit.agent('scribe', { tools: [kit.tool('log')] }),
          ],
        ],
      })
      return kit.agent('root', { tools: [inner, kit.tool('pay')] })
    },
    scripts: {
      root: [{ calls: [{ name: 'billing', args: { customer: 'Ann' } }] }, call('pay'), say('Billed.')],
      scribe: [call('log'), say('Written down.')],
    },
    differs: {
      why: 'ADK begins a node before the event of the one before it is stored, and asks a model before its result is.',
      lines: {
        'scribe: For context: | [charge] said: {"charged":"Ann"}': 'scribe: {"charged":"Ann"}',
        'scribe: For context: | [charge] said: {"charged":"Ann"} | call log':
          'scribe: {"charged":"Ann"} | call log | result log',
        [BILLED.replace('FIRST', INPUT).replace('SECOND', SAID)]: BILLED.replace('FIRST', SAID).replace(
          'SECOND',
          INPUT,
        ),
      },
    },
  },
  'a node tool twice at once': {
    isKeptInOrder: true,
    build: kit => {
      const bill = node(
        kit.fn('bill', (_context, input) => ({ billed: (input as { customer: string }).customer })),
        {
          inputSchema: z.object({ customer: z.string() }),
        },
      )
      return kit.agent('root', { tools: [new NodeTool(bill)] })
    },
    scripts: {
      root: [
        {
          calls: [
            { name: 'bill', args: { customer: 'Ann' } },
            { name: 'bill', args: { customer: 'Bob' } },
          ],
        },
        say('Billed both.'),
      ],
    },
    isUnordered: true,
  },
  'agents of other kinds as nodes': {
    build: kit => {
      const pair = new SequentialAgent({
        name: 'pair',
        subAgents: [kit.agent('one', { tools: [kit.tool('look')] }), kit.agent('two')],
      })
      const boss = kit.agent('boss', {
        tools: [new AgentTool({ agent: kit.agent('expert', { tools: [kit.tool('find')] }) })],
      })
      return new Workflow({ name: 'mixed', edges: [['START', pair, boss]] })
    },
    scripts: {
      one: [call('look'), say('One.')],
      two: [say('Two.')],
      boss: [{ calls: [{ name: 'expert', args: { request: 'Find it.' } }] }, say('Found.')],
      expert: [call('find'), say('Here.')],
    },
  },
  'structured output to the next node': {
    build: kit =>
      new Workflow({
        name: 'structured',
        edges: [
          [
            'START',
            kit.agent('parser', { outputSchema: z.object({ city: z.string() }) }),
            kit.fn('use', (_context, input) => `City: ${(input as { city: string }).city}`),
          ],
        ],
      }),
    scripts: { parser: [say('{"city":"Rome"}')] },
  },
  'an agent in task mode': {
    build: kit =>
      new Workflow({
        name: 'tasks',
        edges: [
          [
            'START',
            kit.agent('planner', { mode: 'task', tools: [kit.tool('look')] }),
            kit.fn('use', (_context, input) => `used ${JSON.stringify(input)}`),
          ],
        ],
      }),
    scripts: {
      planner: [
        call('look'),
        { calls: [{ name: 'finish_task', args: { result: 'planned' } }] },
        say('Planned.'),
      ],
    },
  },
  'a node of its own class': {
    build: kit => {
      class Stamp extends WorkflowNode {
        protected async *runNodeImpl(_context: NodeContext, input: unknown) {
          kit.note('stamp')
          yield `stamped ${String(input)}`
        }
      }
      return new Workflow({
        name: 'own',
        edges: [
          [
            'START',
            new Stamp({ name: 'stamp' }),
            kit.fn('after', (_context, input) => `after ${String(input)}`),
          ],
        ],
      })
    },
  },
  'a function as the root': {
    build: kit => kit.fn('shout', (_context, input) => String(input).toUpperCase()),
  },
  'a second message': {
    build: kit =>
      new Workflow({
        name: 'again',
        edges: [
          [
            'START',
            kit.agent('clerk', { tools: [kit.tool('look')] }),
            kit.fn('end', (_context, input) => `end ${String(input)}`),
          ],
        ],
      }),
    scripts: { clerk: [call('look'), say('One.'), call('look'), say('Two.')] },
    turns: ['first', 'second'],
  },
}
