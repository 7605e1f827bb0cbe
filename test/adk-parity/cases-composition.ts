// Agents made of agents: sequences, loops, parallel branches, transfers, routes, agents without a model, and patterns whose
// last event is not text.
import {
  BaseAgent,
  createEvent,
  createEventActions,
  type Event,
  ExitLoopTool,
  type InvocationContext,
  LoopAgent,
  ParallelAgent,
  RoutedAgent,
  RoutedLlm,
  SequentialAgent,
} from '@google/adk'
import { calls, type Kit, type ParityCase } from './parity.js'

/** An agent in code: what it does is a generator. */
class CodeAgent extends BaseAgent {
  readonly #act: (context: InvocationContext) => AsyncGenerator<Event, void, void>

  constructor(
    name: string,
    act: (context: InvocationContext) => AsyncGenerator<Event, void, void>,
    subAgents: BaseAgent[] = [],
  ) {
    super({ name, subAgents })
    this.#act = act
  }

  protected override runAsyncImpl(context: InvocationContext): AsyncGenerator<Event, void, void> {
    return this.#act(context)
  }

  protected override async *runLiveImpl(): AsyncGenerator<Event, void, void> {}
}

/** An agent that emits one event. */
function emitter(name: string, fields: Parameters<typeof createEvent>[0], journal: string[] = []): BaseAgent {
  return new CodeAgent(name, async function* ({ invocationId, branch }) {
    journal.push(`agent ${name}`)
    yield createEvent({ author: name, invocationId, ...(branch ? { branch } : {}), ...fields })
  })
}

const silent = (name: string, actions: Parameters<typeof createEventActions>[0], journal: string[]) =>
  emitter(name, { actions: createEventActions(actions) }, journal)

const speaker = (name: string, text: string) =>
  emitter(name, { content: { role: 'model', parts: [{ text }] } })

const transfer = (agentName: string) => calls('transfer_to_agent', { agentName })

/** A root with two agents that describe themselves. */
const team = ({ agent, tool }: Kit, options: { child?: object; root?: object } = {}) =>
  agent('root', {
    subAgents: [
      agent('sales', { description: 'Sells.', tools: [tool('price')], ...options.child }),
      agent('help', { description: 'Helps.' }),
    ],
    ...options.root,
  })

const sequence = (name: string, subAgents: BaseAgent[]) => new SequentialAgent({ name, subAgents })
const loop = (subAgents: BaseAgent[], maxIterations = 3) =>
  new LoopAgent({ name: 'loop', subAgents, maxIterations })

export const COMPOSITION: Readonly<Record<string, ParityCase>> = {
  'two agents in sequence': {
    feature: 'SequentialAgent',
    build: ({ agent }) => sequence('line', [agent('writer'), agent('critic')]),
    scripts: { writer: [{ text: 'A draft.' }], critic: [{ text: 'Good.' }] },
    turns: ['a', 'b'],
  },
  'a sequence that passes output keys': {
    feature: 'SequentialAgent',
    build: ({ agent }) =>
      sequence('line', [
        agent('writer', { outputKey: 'draft' }),
        agent('reviewer', { outputKey: 'review', instruction: 'Review {draft}' }),
        agent('editor', { instruction: 'Edit {draft} by {review}', includeContents: 'none' }),
      ]),
    scripts: { writer: [{ text: 'D' }], reviewer: [{ text: 'R' }], editor: [{ text: 'E' }] },
  },
  'a sequence of sequences with tools': {
    feature: 'SequentialAgent',
    build: ({ agent, tool }) =>
      sequence('outer', [
        sequence('inner', [agent('one', { tools: [tool('look')] }), agent('two')]),
        agent('three', { tools: [tool('note')] }),
      ]),
    scripts: {
      one: [calls('look'), { text: '1' }],
      two: [{ text: '2' }],
      three: [calls('note'), { text: '3' }],
    },
  },
  'a sequence that ends in an agent of state alone': {
    feature: 'Last event is not text',
    build: ({ agent, tool, journal }) =>
      sequence('line', [
        agent('writer', { tools: [tool('look')] }),
        silent('keeper', { stateDelta: { kept: 1 } }, journal),
      ]),
    scripts: { writer: [calls('look'), { text: 'Kept.' }] },
  },
  'a loop with a checker that escalates': {
    feature: 'Last event is not text',
    build: ({ agent, tool, journal }) =>
      loop([agent('writer', { tools: [tool('charge')] }), silent('checker', { escalate: true }, journal)]),
    scripts: { writer: [calls('charge'), { text: 'Charged.' }] },
  },
  'a writer and a critic that leaves the loop': {
    feature: 'Last event is not text',
    build: ({ agent }) => loop([agent('writer'), agent('critic', { tools: [new ExitLoopTool()] })]),
    scripts: {
      writer: [{ text: 'One.' }, { text: 'Two.' }],
      critic: [{ text: 'Longer.' }, calls('exit_loop')],
    },
  },
  'a tool that escalates, after which the model says nothing': {
    feature: 'Last event is not text',
    build: ({ agent, tool }) => {
      const leave = tool('leave', ({ actions }) => {
        actions.escalate = true
      })
      return loop([agent('writer'), agent('checker', { tools: [leave] })])
    },
    scripts: { writer: [{ text: 'A draft.' }], checker: [calls('leave'), {}] },
  },
  'a tool that skips the summary': {
    feature: 'Last event is not text',
    build: ({ agent, tool }) =>
      agent('root', {
        tools: [
          tool('send', ({ actions }) => {
            actions.skipSummarization = true
          }),
        ],
      }),
    scripts: { root: [calls('send')] },
  },
  'a tool that ends the invocation': {
    feature: 'Last event is not text',
    build: ({ agent, tool }) =>
      agent('root', {
        tools: [
          tool('stop', ({ invocationContext }) => {
            invocationContext.endInvocation = true
          }),
        ],
      }),
    scripts: { root: [calls('stop')] },
  },
  'an agent that emits nothing': {
    feature: 'Last event is not text',
    build: ({ agent }) => sequence('line', [agent('writer'), new CodeAgent('idle', async function* () {})]),
    scripts: { writer: [{ text: 'Alone.' }] },
  },
  'an answer that a callback empties': {
    feature: 'Last event is not text',
    build: ({ agent, tool }) =>
      agent('root', {
        tools: [tool('look')],
        afterModelCallback: ({ response }) =>
          response.content?.parts?.some(({ text }) => text === 'secret')
            ? { ...response, content: { role: 'model', parts: [] } }
            : undefined,
      }),
    scripts: { root: [calls('look'), { text: 'secret' }] },
  },
  'a loop to its last iteration': {
    feature: 'LoopAgent',
    build: ({ agent }) => loop([agent('writer', { outputKey: 'draft' })], 3),
    scripts: { writer: [{ text: '1' }, { text: '2' }, { text: '3' }] },
  },
  'a loop that counts in the state': {
    feature: 'LoopAgent',
    build: ({ agent, tool, journal }) => {
      const counter = tool('count', ({ state, actions }) => {
        const n = Number(state.get('n') ?? 0) + 1
        state.set('n', n)
        if (n >= 2) actions.escalate = true
        journal.push(`n ${n}`)
        return { n }
      })
      return loop([agent('worker', { tools: [counter] })], 5)
    },
    scripts: { worker: [calls('count'), { text: 'Once.' }, calls('count'), { text: 'Twice.' }] },
  },
  'a loop in a sequence': {
    feature: 'LoopAgent',
    build: ({ agent }) => sequence('line', [loop([agent('writer')], 2), agent('editor')]),
    scripts: { writer: [{ text: '1' }, { text: '2' }], editor: [{ text: 'E' }] },
  },
  'three agents at once': {
    feature: 'ParallelAgent',
    build: ({ agent }) =>
      new ParallelAgent({
        name: 'fan',
        subAgents: [1, 2, 3].map(n => agent(`p${n}`, { outputKey: `r${n}` })),
      }),
    scripts: { p1: [{ text: '1' }], p2: [{ text: '2' }], p3: [{ text: '3' }] },
    isUnordered: true,
  },
  'agents with tools at once': {
    feature: 'ParallelAgent',
    build: ({ agent, tool }) =>
      new ParallelAgent({
        name: 'fan',
        subAgents: [agent('p1', { tools: [tool('look')] }), agent('p2', { tools: [tool('note')] })],
      }),
    scripts: { p1: [calls('look'), { text: '1' }], p2: [calls('note'), { text: '2' }] },
    isUnordered: true,
  },
  'a fan and a merger': {
    feature: 'ParallelAgent',
    build: ({ agent }) =>
      sequence('line', [
        new ParallelAgent({
          name: 'fan',
          subAgents: [agent('p1', { outputKey: 'r1' }), agent('p2', { outputKey: 'r2' })],
        }),
        agent('merger', { instruction: 'Merge {r1} and {r2}' }),
      ]),
    scripts: { p1: [{ text: '1' }], p2: [{ text: '2' }], merger: [{ text: '12' }] },
    isUnordered: true,
  },
  'a transfer to a child': {
    feature: 'Transfers',
    build: kit => team(kit),
    scripts: { root: [transfer('sales')], sales: [calls('price'), { text: 'Ten.' }] },
  },
  'the next turn of the agent that spoke last': {
    feature: 'Transfers',
    build: kit => team(kit),
    scripts: { root: [transfer('sales')], sales: [{ text: 'Hello.' }, { text: 'Again.' }] },
    turns: ['a', 'b'],
  },
  'a transfer to a peer': {
    feature: 'Transfers',
    build: kit => team(kit),
    scripts: { root: [transfer('sales')], sales: [transfer('help')], help: [{ text: 'Help.' }] },
  },
  'a transfer back to the parent': {
    feature: 'Transfers',
    build: kit => team(kit),
    scripts: { root: [transfer('sales'), { text: 'Back.' }], sales: [transfer('root')] },
  },
  'a child that may not transfer': {
    feature: 'Transfers',
    build: kit => team(kit, { child: { disallowTransferToParent: true, disallowTransferToPeers: true } }),
    scripts: { root: [transfer('sales'), { text: 'Root again.' }], sales: [{ text: 'Mine.' }] },
    turns: ['a', 'b'],
  },
  'a transfer through three levels': {
    feature: 'Transfers',
    build: ({ agent }) => {
      const deep = agent('deep', { description: 'Deep.' })
      const middle = agent('middle', { description: 'Middle.', subAgents: [deep] })
      return agent('root', { subAgents: [middle] })
    },
    scripts: { root: [transfer('middle')], middle: [transfer('deep')], deep: [{ text: 'Down here.' }] },
    turns: ['a', 'b'],
  },
  'a transfer with text and state': {
    feature: 'Transfers',
    build: kit => team(kit, { root: { outputKey: 'said' } }),
    scripts: { root: [{ text: 'One moment.', ...transfer('help') }], help: [{ text: 'Here.' }] },
  },
  'a transfer to a sequence': {
    feature: 'Transfers',
    build: ({ agent }) => {
      const line = new SequentialAgent({
        name: 'line',
        description: 'A line.',
        subAgents: [agent('one'), agent('two')],
      })
      return agent('root', { subAgents: [line] })
    },
    scripts: { root: [transfer('line')], one: [{ text: '1' }], two: [{ text: '2' }] },
  },
  'a transfer to an agent that does not exist': {
    feature: 'Unknown names',
    build: kit => team(kit),
    scripts: { root: [transfer('ghost'), { text: 'Then me.' }] },
  },
  'a call of a tool that does not exist': {
    feature: 'Unknown names',
    build: ({ agent, tool }) => agent('root', { tools: [tool('look')] }),
    scripts: { root: [calls('lok'), { text: 'Sorry.' }] },
  },
  'an agent without a model': {
    feature: 'Agents in code',
    build: ({ agent }) => sequence('line', [speaker('greeter', 'Welcome.'), agent('writer')]),
    scripts: { writer: [{ text: 'Thanks.' }] },
  },
  'an agent in code that drives others': {
    feature: 'Agents in code',
    build: ({ agent, journal }) => {
      const [draft, check] = [
        agent('draft', { outputKey: 'draft' }),
        agent('check', { outputKey: 'verdict' }),
      ]
      return new CodeAgent(
        'flow',
        async function* (context) {
          for (let round = 0; round < 3; round += 1) {
            yield* draft.runAsync(context)
            yield* check.runAsync(context)
            journal.push(`verdict ${context.session.state.verdict}`)
            if (context.session.state.verdict === 'good') return
          }
        },
        [draft, check],
      )
    },
    scripts: { draft: [{ text: '1' }, { text: '2' }], check: [{ text: 'bad' }, { text: 'good' }] },
  },
  'an agent in code with metadata and an error': {
    feature: 'Agents in code',
    build: ({ agent }) =>
      sequence('line', [
        emitter('marker', {
          customMetadata: { trace: { id: 7 } },
          content: { role: 'model', parts: [{ text: 'Marked.' }] },
        }),
        agent('writer'),
      ]),
    scripts: { writer: [{ text: 'Seen.' }] },
  },
  'an agent chosen by a router': {
    feature: 'Routed agents and models',
    build: ({ agent, journal }) =>
      new RoutedAgent({
        name: 'router',
        agents: { a: agent('a'), b: agent('b') },
        router: (_agents, context) => {
          const key = context.userContent?.parts?.[0]?.text === 'b' ? 'b' : 'a'
          journal.push(`route ${key}`)
          return key
        },
      }),
    scripts: { a: [{ text: 'A.' }], b: [{ text: 'B.' }] },
    turns: ['a', 'b'],
  },
  'a model chosen by a router': {
    feature: 'Routed agents and models',
    build: ({ agent, llm, journal }) =>
      agent('root', {
        model: new RoutedLlm({
          models: { fast: llm('gemini-2.5-flash'), deep: llm('gemini-2.5-pro') },
          router: (_models, request) => {
            const key = JSON.stringify(request.contents).includes('hard') ? 'deep' : 'fast'
            journal.push(`route ${key}`)
            return key
          },
        }),
      }),
    scripts: { root: [{ text: 'Easy.' }, { text: 'Hard.' }] },
    turns: ['easy', 'hard'],
  },
  'a model as an object': {
    feature: 'Routed agents and models',
    build: ({ agent, llm }) => agent('root', { model: llm('gemini-2.5-pro') }),
    scripts: { root: [{ text: 'Pro.' }] },
  },
}
