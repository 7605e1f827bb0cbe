// Long sessions and settings of a run: compaction, code execution, streaming, limits, pauses, odd answers.
import {
  AnchoredContextCompactor,
  BaseCodeExecutor,
  type BaseContextCompactor,
  BaseLlmRequestProcessor,
  type BaseSummarizer,
  BuiltInCodeExecutor,
  type CodeExecutionResult,
  createEvent,
  type Event,
  type LlmRequest,
  LlmSummarizer,
  type RunConfig,
  StreamingMode,
  TokenBasedContextCompactor,
  TrajectoryThoughtPruningCompactor,
  TruncatingContextCompactor,
} from '@google/adk'
import { answers } from './cases-services.js'
import { calls, type Kit, type ParityCase } from './parity.js'

/** A summary by count, so that it is the same in every way. */
const counting: BaseSummarizer = {
  summarize: async events => summaryOf(events, `${events.length} events`),
}

export function summaryOf(events: readonly Event[], compactedContent: string) {
  const event = createEvent({
    author: 'system',
    content: { role: 'model', parts: [{ text: compactedContent }] },
  })
  const times = events.map(({ timestamp }) => timestamp)
  const [startTime, endTime] = [times[0] ?? 0, times.at(-1) ?? 0]
  return Object.assign(event, { isCompacted: true as const, startTime, endTime, compactedContent })
}

/** ADK's compactors compare times, and events of one millisecond are one moment for them. */
const tick = () => new Promise<void>(resolve => setTimeout(resolve, 3))

/** One agent with a compactor, over eight turns with a tool call each. */
const compacted = (
  compactors: (kit: Kit) => BaseContextCompactor[],
  more: (kit: Kit) => object = () => ({}),
): ParityCase => ({
  feature: 'Compaction',
  isTimed: true,
  build: kit =>
    kit.agent('root', { tools: [kit.tool('look', tick)], contextCompactors: compactors(kit), ...more(kit) }),
  scripts: {
    root: [1, 2, 3, 4].flatMap(n => [
      calls('look', { text: `${n}` }),
      { text: `Answer ${n}. ${'word '.repeat(20)}` },
    ]),
    nobody: [{ text: 'A summary.' }, { text: 'Another summary.' }],
  },
  turns: ['a', 'b', 'c', 'd'],
})

/** Runs nothing: what it prints is the code's length. */
class LengthExecutor extends BaseCodeExecutor {
  readonly #journal: string[]

  constructor(journal: string[]) {
    super()
    this.#journal = journal
  }

  override async executeCode({
    codeExecutionInput,
  }: {
    codeExecutionInput: { code: string }
  }): Promise<CodeExecutionResult> {
    this.#journal.push(`run ${codeExecutionInput.code.trim()}`)
    return { stdout: `${codeExecutionInput.code.trim().length}`, stderr: '', outputFiles: [] }
  }
}

class Reminder extends BaseLlmRequestProcessor {
  // biome-ignore lint/correctness/useYield: ADK's processors may emit events; this one has none.
  override async *runAsync(_context: unknown, request: LlmRequest): AsyncGenerator<Event, void, void> {
    request.contents.push({ role: 'user', parts: [{ text: 'Remember the date.' }] })
  }
}

/** One agent with a tool under settings of the run. */
const running = (
  feature: string,
  runConfig: Partial<RunConfig>,
  scripts: ParityCase['scripts'],
): ParityCase => ({
  feature,
  build: kit => ({ agent: kit.agent('root', { tools: [kit.tool('look')] }), runConfig }),
  scripts,
})

const streaming = { streamingMode: StreamingMode.SSE }
const looked = {
  root: [
    { text: 'Let me look around a little first.', ...calls('look') },
    { text: 'I have seen all of it now.' },
  ],
}

export const HISTORY: Readonly<Record<string, ParityCase>> = {
  'a long conversation': {
    feature: 'LlmAgent',
    build: ({ agent, tool }) => agent('root', { tools: [tool('look')] }),
    scripts: {
      root: Array.from({ length: 8 }, (_, n) => [calls('look', { text: `${n}` }), { text: `${n}` }]).flat(),
    },
    turns: ['1', '2', '3', '4', '5', '6', '7', '8'],
  },
  'a compactor by tokens': compacted(() => [
    new TokenBasedContextCompactor({ tokenThreshold: 60, eventRetentionSize: 3, summarizer: counting }),
  ]),
  'a compactor whose summaries a model writes': compacted(({ llm }) => [
    new TokenBasedContextCompactor({
      tokenThreshold: 60,
      eventRetentionSize: 3,
      summarizer: new LlmSummarizer({ llm: llm() }),
    }),
  ]),
  'a compactor with an anchor': compacted(() => [
    new AnchoredContextCompactor({ tokenThreshold: 60, eventRetentionSize: 3, summarizer: counting }),
  ]),
  'a compactor that truncates': compacted(() => [new TruncatingContextCompactor({ threshold: 8 })]),
  'a compactor that removes thoughts': compacted(() => [
    new TrajectoryThoughtPruningCompactor({ eventRetentionSize: 2 }),
  ]),
  'code that an executor runs': {
    feature: 'Code execution',
    build: ({ agent, journal }) => agent('root', { codeExecutor: new LengthExecutor(journal) }),
    scripts: { root: [{ text: 'Let me see.\n```python\nprint(1)\n```' }, { text: 'Eight.' }] },
  },
  'code that an executor runs, and the turn after it': {
    feature: 'Code execution',
    build: ({ agent, journal }) => agent('root', { codeExecutor: new LengthExecutor(journal) }),
    scripts: { root: [{ text: '```python\nprint(1)\n```' }, { text: 'Eight.' }, { text: 'Still eight.' }] },
    turns: ['a', 'b'],
  },
  'code that Gemini runs': {
    feature: 'Gemini’s own tools',
    build: ({ agent }) => agent('root', { codeExecutor: new BuiltInCodeExecutor() }),
    scripts: { root: [{ text: 'Eight.' }] },
  },
  'a request processor of one’s own': {
    feature: 'Callbacks',
    build: kit => {
      const agent = kit.agent('root', { tools: [kit.tool('look')] })
      agent.requestProcessors.push(new Reminder())
      return agent
    },
    scripts: looked,
  },
  'streamed text': running('Streaming', streaming, {
    root: [{ text: 'One two three four five six seven eight.' }],
  }),
  'streamed text and calls': running('Streaming', streaming, looked),
  'streamed answers and callbacks': {
    feature: 'Streaming',
    build: kit => ({
      agent: kit.agent('root', {
        tools: [kit.tool('look')],
        beforeModelCallback: () => void kit.journal.push('before model'),
        beforeToolCallback: () => void kit.journal.push('before tool'),
      }),
      runConfig: streaming,
    }),
    scripts: looked,
  },
  'answers that are not streamed': running('Streaming', { streamingMode: StreamingMode.NONE }, looked),
  'callbacks of answers that are not streamed': {
    feature: 'Callbacks',
    build: kit => ({
      agent: kit.agent('root', {
        tools: [kit.tool('look')],
        afterModelCallback: ({ context, response }) => {
          kit.journal.push(`after ${response.content?.parts?.length}`)
          context.state.set('calls', Number(context.state.get('calls') ?? 0) + 1)
          return undefined
        },
      }),
      runConfig: { streamingMode: StreamingMode.NONE },
    }),
    scripts: looked,
  },
  'a limit of model calls': running(
    'Limits of a run',
    { maxLlmCalls: 2 },
    {
      root: [1, 2, 3, 4].map(n => calls('look', { text: `${n}` })),
    },
  ),
  'a pause at a tool call': {
    feature: '`pauseOnToolCalls`',
    build: kit => ({
      agent: kit.agent('root', { tools: [kit.tool('look')] }),
      runConfig: { pauseOnToolCalls: true },
    }),
    scripts: { root: [calls('look', { text: 'x' }), { text: 'Thanks.' }] },
    turns: ['go', answers('look', { seen: 'by the client' })],
  },
  'a pause at two tool calls': {
    feature: '`pauseOnToolCalls`',
    build: kit => ({
      agent: kit.agent('root', { tools: [kit.tool('look'), kit.tool('note')] }),
      runConfig: { pauseOnToolCalls: true },
    }),
    scripts: {
      root: [
        { toolCalls: [{ name: 'look' }, { name: 'note' }] },
        calls('look', { text: '2' }),
        { text: 'Thanks.' },
      ],
    },
    turns: [
      'go',
      events => [
        ...partsOf(answers('look', { n: 1 }), events),
        ...partsOf(answers('note', { n: 2 }), events),
      ],
      answers('look', { n: 3 }),
    ],
  },
  'a confirmation in words': {
    feature: 'Tool confirmation',
    build: kit => ({
      agent: kit.agent('root', { tools: [kit.tool('look')] }),
      runConfig: { plainTextToolConfirmation: true },
    }),
    scripts: looked,
    turns: ['go', 'yes'],
  },
  'an answer that is cut off': running('Odd answers', {}, { root: [{ text: 'Too lo', finish: 'length' }] }),
  'an empty answer': running('Odd answers', {}, { root: [{}, { text: 'Again.' }] }),
  'a text before an empty answer': running(
    'Odd answers',
    {},
    { root: [calls('look'), {}, { text: 'Again.' }] },
  ),
  'an answer that is blocked': running('Odd answers', {}, { root: [{ finish: 'blocked' }] }),
}

function partsOf(turn: ReturnType<typeof answers>, events: readonly Event[]) {
  return typeof turn === 'function' ? turn(events) : []
}
