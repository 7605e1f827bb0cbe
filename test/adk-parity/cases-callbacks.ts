// Callbacks of agents and plugins of every kind: observing, replacing, refusing.
import {
  BasePlugin,
  GlobalInstructionPlugin,
  LoggingPlugin,
  PolicyOutcome,
  SecurityPlugin,
} from '@google/adk'
import { calls, type Kit, type ParityCase } from './parity.js'

const model = (text: string) => ({ role: 'model', parts: [{ text }] })
const looked = { root: [calls('look', { text: 'x' }), { text: 'Seen.' }] }

/** One agent with a tool and callbacks. */
const observed = (callbacks: (kit: Kit) => object, scripts: ParityCase['scripts'] = looked): ParityCase => ({
  feature: 'Callbacks',
  build: kit => kit.agent('root', { tools: [kit.tool('look')], ...callbacks(kit) }),
  scripts,
})

/** One agent with a tool under a plugin, which is a class of ADK's with some methods of its own. */
const plugged = (
  methods: (
    journal: string[],
  ) => Partial<Record<Exclude<keyof BasePlugin, 'name'>, (given: never) => unknown>>,
  scripts: ParityCase['scripts'] = looked,
): ParityCase => ({
  feature: 'Plugins',
  build: kit => withPlugins(kit, [Object.assign(new Plugin('test'), methods(kit.journal))]),
  scripts,
})

class Plugin extends BasePlugin {}

function withPlugins(kit: Kit, plugins: BasePlugin[]): ReturnType<ParityCase['build']> {
  const fails = kit.tool('fail', () => {
    throw new Error('broken')
  })
  return { agent: kit.agent('root', { tools: [kit.tool('look'), fails] }), plugins }
}

type Given = Parameters<BasePlugin['beforeToolCallback']>[0] &
  Parameters<BasePlugin['beforeModelCallback']>[0] &
  Parameters<BasePlugin['afterModelCallback']>[0] &
  Parameters<BasePlugin['onEventCallback']>[0] &
  Parameters<BasePlugin['onUserMessageCallback']>[0]

export const CALLBACKS: Readonly<Record<string, ParityCase>> = {
  'every callback observes': observed(({ journal }) => {
    const note = (name: string) => () => void journal.push(name)
    return {
      beforeAgentCallback: note('before agent'),
      afterAgentCallback: note('after agent'),
      beforeModelCallback: note('before model'),
      afterModelCallback: note('after model'),
      beforeToolCallback: note('before tool'),
      afterToolCallback: note('after tool'),
    }
  }),
  'lists of callbacks stop at the first answer': observed(({ journal }) => ({
    beforeModelCallback: [
      () => void journal.push('first'),
      () => ({ content: model('Short.') }),
      () => void journal.push('never'),
    ],
  })),
  'before agent answers instead': observed(() => ({ beforeAgentCallback: () => model('Not now.') })),
  'before agent sets state': observed(() => ({
    beforeAgentCallback: ({ state }: { state: Map<string, unknown> }) => void state.set('visits', 1),
  })),
  'after agent adds an answer': observed(() => ({ afterAgentCallback: () => model('And more.') })),
  'after agent sets state': observed(() => ({
    afterAgentCallback: ({ state }: { state: Map<string, unknown> }) => void state.set('done', true),
  })),
  'before model answers instead': observed(() => ({
    beforeModelCallback: () => ({ content: model('Blocked.') }),
  })),
  'before model changes the request': observed(() => ({
    beforeModelCallback: ({ request }: { request: Given['llmRequest'] }) => {
      request.contents.push({ role: 'user', parts: [{ text: 'In one word.' }] })
      request.config = { ...request.config, temperature: 0.7 }
      return undefined
    },
  })),
  'before model changes the instruction': observed(() => ({
    beforeModelCallback: ({ request }: { request: Given['llmRequest'] }) => {
      request.config = {
        ...request.config,
        systemInstruction: `${request.config?.systemInstruction} [prefix]`,
      }
      return undefined
    },
  })),
  'before model removes the tools': observed(
    () => ({
      beforeModelCallback: ({ request }: { request: Given['llmRequest'] }) => {
        request.config = { ...request.config, tools: [] }
        return undefined
      },
    }),
    { root: [{ text: 'No tools.' }] },
  ),
  'before model answers with a call': observed(
    ({ journal }) => ({
      beforeModelCallback: () => {
        if (journal.includes('called')) return undefined
        journal.push('called')
        return {
          content: { role: 'model', parts: [{ functionCall: { name: 'look', args: { text: 'y' } } }] },
        }
      },
    }),
    { root: [{ text: 'Then.' }] },
  ),
  'after model replaces the answer': observed(() => ({
    afterModelCallback: ({ response }: { response: Given['llmResponse'] }) =>
      response.content?.parts?.[0]?.text ? { ...response, content: model('Redacted.') } : undefined,
  })),
  'after model sets state and metadata': observed(() => ({
    afterModelCallback: ({
      context,
      response,
    }: {
      context: { state: Map<string, unknown> }
      response: Given['llmResponse']
    }) => {
      context.state.set('calls', Number(context.state.get('calls') ?? 0) + 1)
      return { ...response, customMetadata: { seen: true } }
    },
  })),
  'before tool answers instead': observed(() => ({ beforeToolCallback: () => ({ cached: true }) })),
  'before tool changes the arguments': observed(() => ({
    beforeToolCallback: ({ args }: { args: Record<string, unknown> }) => {
      args.text = 'changed'
      return undefined
    },
  })),
  'after tool replaces the result': observed(() => ({
    afterToolCallback: ({ response }: { response: object }) => ({ ...response, extra: 1 }),
  })),
  'a tool callback sets state': observed(() => ({
    beforeToolCallback: ({ context }: { context: { state: Map<string, unknown> } }) => {
      context.state.set('guard', 'passed')
      return undefined
    },
  })),
  'a callback that throws': observed(() => ({
    beforeModelCallback: () => {
      throw new Error('callback broke')
    },
  })),
  'a tool callback that throws': observed(() => ({
    beforeToolCallback: () => {
      throw new Error('callback broke')
    },
  })),
  'every method of a plugin observes': plugged(
    journal => {
      const note = (name: string) => async () => void journal.push(name)
      return {
        onUserMessageCallback: note('message'),
        beforeRunCallback: note('before run'),
        afterRunCallback: note('after run'),
        onEventCallback: note('event'),
        beforeAgentCallback: note('before agent'),
        afterAgentCallback: note('after agent'),
        beforeModelCallback: note('before model'),
        afterModelCallback: note('after model'),
        beforeToolSelection: note('selection'),
        beforeToolCallback: note('before tool'),
        afterToolCallback: note('after tool'),
        onToolErrorCallback: note('tool error'),
      }
    },
    { root: [calls('look'), calls('fail'), { text: 'Done.' }] },
  ),
  'a plugin rewrites the message': plugged(() => ({
    onUserMessageCallback: async ({ userMessage }: Given) => ({
      ...userMessage,
      parts: [{ text: '[redacted]' }],
    }),
  })),
  'a plugin answers before the run': plugged(() => ({
    beforeRunCallback: async () => model('Closed today.'),
  })),
  'a plugin rewrites events': plugged(() => ({
    onEventCallback: async ({ event }: Given) =>
      event.content?.parts?.[0]?.text ? { ...event, customMetadata: { checked: true } } : undefined,
  })),
  'a plugin rewrites the text of events': plugged(() => ({
    onEventCallback: async ({ event }: Given) =>
      event.content?.parts?.[0]?.text ? { ...event, content: model('[filtered]') } : undefined,
  })),
  'a plugin answers for the model': plugged(() => ({
    beforeModelCallback: async () => ({ content: model('Cached.') }),
  })),
  'a plugin changes the request': plugged(() => ({
    beforeModelCallback: async ({ llmRequest }: Given) => {
      for (const content of llmRequest.contents)
        for (const part of content.parts ?? []) if (part.text) part.text = part.text.replace('go', 'GO')
      return undefined
    },
  })),
  'a plugin changes the answer': plugged(() => ({
    afterModelCallback: async ({ llmResponse }: Given) =>
      llmResponse.content?.parts?.[0]?.text ? { ...llmResponse, content: model('[changed]') } : undefined,
  })),
  'a plugin hides a tool': plugged(() => ({
    beforeToolSelection: async ({ tools }: { tools: Record<string, unknown> }) => ({ look: tools.look }),
  })),
  'a plugin answers for a tool': plugged(() => ({ beforeToolCallback: async () => ({ from: 'plugin' }) })),
  'a plugin changes a result': plugged(() => ({ afterToolCallback: async () => ({ from: 'plugin' }) })),
  'a plugin answers for a tool that throws': plugged(
    () => ({ onToolErrorCallback: async () => ({ handled: true }) }),
    { root: [calls('fail'), { text: 'Handled.' }] },
  ),
  'two plugins, the first answers': {
    feature: 'Plugins',
    build: kit =>
      withPlugins(kit, [
        Object.assign(new Plugin('one'), { beforeToolCallback: async () => ({ from: 'one' }) }),
        Object.assign(new Plugin('two'), { beforeToolCallback: async () => void kit.journal.push('two') }),
      ]),
    scripts: looked,
  },
  'ADK’s logging plugin': {
    feature: 'Plugins',
    build: kit => withPlugins(kit, [new LoggingPlugin()]),
    scripts: looked,
  },
  'ADK’s plugin of a global instruction': {
    feature: 'Plugins',
    build: kit => withPlugins(kit, [new GlobalInstructionPlugin('Everyone: be brief.')]),
    scripts: looked,
  },
  'ADK’s security plugin denies a tool': {
    feature: 'Plugins',
    build: kit =>
      withPlugins(kit, [
        new SecurityPlugin({
          policyEngine: { evaluate: async () => ({ outcome: PolicyOutcome.DENY, reason: 'no' }) },
        }),
      ]),
    scripts: looked,
  },
}
