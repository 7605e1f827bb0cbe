// One agent: instructions, state, output keys and schemas, settings of the model, what history it is shown.
import type { GenerateContentConfig } from '@google/genai'
import { z } from 'zod'
import { calls, type ParityCase, type Turn } from './parity.js'

const said = (...texts: string[]) => ({ root: texts.map(text => ({ text })) })

/** One agent with one setting of `generateContentConfig`. */
const configured = (generateContentConfig: GenerateContentConfig): ParityCase => ({
  feature: '`generateContentConfig`',
  build: ({ agent }) => agent('root', { generateContentConfig }),
  scripts: said('Set.'),
})

const image: Turn = [
  { text: 'What is this?' },
  { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } },
]

export const AGENTS: Readonly<Record<string, ParityCase>> = {
  'one question, one answer': {
    feature: 'LlmAgent',
    build: ({ agent }) => agent('root'),
    scripts: said('Hello.'),
  },
  'three turns of one session': {
    feature: 'LlmAgent',
    build: ({ agent }) => agent('root'),
    scripts: said('One.', 'Two.', 'Three.'),
    turns: ['a', 'b', 'c'],
  },
  'no instruction at all': {
    feature: 'LlmAgent',
    build: ({ agent }) => agent('root', { instruction: '' }),
    scripts: { root: [{ text: 'Fine.' }] },
  },
  'a description': {
    feature: 'LlmAgent',
    build: ({ agent }) => agent('root', { description: 'Answers questions about ships.' }),
    scripts: said('A ship.'),
  },
  'a model that an ancestor names': {
    feature: 'LlmAgent',
    build: ({ agent }) => {
      const child = agent('child', { description: 'Helps.' })
      delete child.model
      return agent('root', { subAgents: [child] })
    },
    scripts: { root: [calls('transfer_to_agent', { agentName: 'child' })], child: [{ text: 'Mine.' }] },
  },
  'an image in the message': {
    feature: 'Media',
    build: ({ agent }) => agent('root'),
    scripts: said('A dot.'),
    turns: [image],
  },
  'a file by its address': {
    feature: 'Media',
    build: ({ agent }) => agent('root'),
    scripts: said('A page.'),
    turns: [
      [{ text: 'Read it.' }, { fileData: { mimeType: 'application/pdf', fileUri: 'gs://bucket/page.pdf' } }],
    ],
  },
  'an image in an earlier turn': {
    feature: 'Media',
    build: ({ agent }) => agent('root'),
    scripts: said('A dot.', 'Still a dot.'),
    turns: [image, 'Sure?'],
  },
  'thoughts of the model': {
    feature: 'Thoughts',
    build: ({ agent }) =>
      agent('root', { generateContentConfig: { thinkingConfig: { includeThoughts: true } } }),
    scripts: { root: [{ thinking: 'Hm.', text: 'Yes.' }, { text: 'No.' }] },
    turns: ['a', 'b'],
  },
  'a template in the instruction': {
    feature: 'Instructions',
    build: ({ agent }) => agent('root', { instruction: 'Speak {language} to {user:name} of {app:place}.' }),
    scripts: said('Bonjour.'),
    stateDelta: { language: 'French', 'user:name': 'Ann', 'app:place': 'Paris' },
  },
  'an optional key in a template': {
    feature: 'Instructions',
    build: ({ agent }) => agent('root', { instruction: 'Mood: {mood?}.' }),
    scripts: said('Calm.'),
  },
  'a key that is missing in a template': {
    feature: 'Instructions',
    build: ({ agent }) => agent('root', { instruction: 'Mood: {mood}.' }),
    scripts: said('Calm.'),
  },
  'a function as instruction': {
    feature: 'Instructions',
    build: ({ agent }) =>
      agent('root', {
        instruction: context => `Agent ${context.agentName}, {literal}, ${context.state.get('n')}.`,
      }),
    scripts: said('Ok.'),
    stateDelta: { n: 7 },
  },
  'an asynchronous instruction': {
    feature: 'Instructions',
    build: ({ agent }) => agent('root', { instruction: async () => 'Later.' }),
    scripts: said('Ok.'),
  },
  'a global instruction': {
    feature: 'Instructions',
    build: ({ agent }) => agent('root', { globalInstruction: 'Be kind to {who}.' }),
    scripts: said('Dear.'),
    stateDelta: { who: 'all' },
  },
  'an instruction that changes with the state': {
    feature: 'Instructions',
    build: ({ agent, tool }) =>
      agent('root', {
        instruction: ({ state }) => `Step ${state.get('step') ?? 0}.`,
        tools: [tool('next', ({ state }) => state.set('step', Number(state.get('step') ?? 0) + 1))],
      }),
    scripts: { root: [calls('next'), calls('next'), { text: 'Two.' }] },
  },
  'an output key': {
    feature: 'Output keys',
    build: ({ agent }) => agent('root', { outputKey: 'answer' }),
    scripts: said('42', '43'),
    turns: ['a', 'b'],
  },
  'an output key in user scope': {
    feature: 'Output keys',
    build: ({ agent }) => agent('root', { outputKey: 'user:answer' }),
    scripts: said('42'),
  },
  'an output key and tool calls': {
    feature: 'Output keys',
    build: ({ agent, tool }) => agent('root', { outputKey: 'answer', tools: [tool('look')] }),
    scripts: { root: [{ text: 'Wait.', ...calls('look') }, { text: 'Seen.' }] },
  },
  'an output schema': {
    feature: 'Output schemas',
    build: ({ agent }) => agent('root', { outputSchema: z.object({ city: z.string(), size: z.number() }) }),
    scripts: said('{"city":"Rome","size":3}'),
  },
  'an output schema with a key': {
    feature: 'Output schemas',
    build: ({ agent }) => agent('root', { outputKey: 'city', outputSchema: z.object({ city: z.string() }) }),
    scripts: said('{"city":"Rome"}'),
  },
  'an output schema with tools': {
    feature: 'Output schemas',
    build: ({ agent, tool }) =>
      agent('root', { tools: [tool('look')], outputSchema: z.object({ city: z.string() }) }),
    scripts: { root: [calls('look'), calls('set_model_response', { city: 'Rome' })] },
  },
  'an output schema with tools and a key': {
    feature: 'Output schemas',
    build: ({ agent, tool }) =>
      agent('root', {
        tools: [tool('look')],
        outputKey: 'city',
        outputSchema: z.object({ city: z.string() }),
      }),
    scripts: { root: [calls('look'), calls('set_model_response', { city: 'Rome' })] },
  },
  'no contents but the current turn': {
    feature: '`includeContents: none`',
    build: ({ agent }) => agent('root', { includeContents: 'none' }),
    scripts: said('One.', 'Two.'),
    turns: ['a', 'b'],
  },
  'no contents, with a tool': {
    feature: '`includeContents: none`',
    build: ({ agent, tool }) => agent('root', { includeContents: 'none', tools: [tool('look')] }),
    scripts: { root: [{ text: 'One.' }, calls('look'), { text: 'Two.' }] },
    turns: ['a', 'b'],
  },
  'state of every scope': {
    feature: 'State',
    build: ({ agent, tool }) =>
      agent('root', {
        tools: [
          tool('put', ({ state }) => {
            for (const scope of ['', 'user:', 'app:', 'temp:']) state.set(`${scope}key`, scope)
          }),
          tool('take', ({ state }) => ({
            own: state.get('key'),
            user: state.get('user:key'),
            app: state.get('app:key'),
          })),
        ],
      }),
    scripts: { root: [calls('put'), calls('take'), { text: 'Kept.' }] },
  },
  'temporary state between two tools': {
    feature: 'State',
    build: ({ agent, tool, journal }) =>
      agent('root', {
        tools: [
          tool('put', ({ state }) => state.set('temp:x', 1)),
          tool('take', ({ state }) => void journal.push(`temp:x ${state.get('temp:x')}`)),
        ],
      }),
    scripts: { root: [calls('put'), calls('take'), { text: 'Kept.' }] },
  },
  'a state delta of the run': {
    feature: 'State',
    build: ({ agent }) => agent('root', { instruction: 'Count {n}.' }),
    scripts: said('One.'),
    stateDelta: { n: 1, 'user:n': 2 },
  },
  'state that is no plain text': {
    feature: 'State',
    build: ({ agent, tool }) =>
      agent('root', {
        tools: [tool('put', ({ state }) => state.set('list', [{ a: [1, null, { b: true }] }]))],
      }),
    scripts: { root: [calls('put'), { text: 'Kept.' }] },
  },
  'temperature and its kin': configured({
    temperature: 0.1,
    topP: 0.5,
    topK: 3,
    seed: 5,
    stopSequences: ['END'],
  }),
  'a limit of output': configured({ maxOutputTokens: 64 }),
  'safety settings': configured({
    safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_LOW_AND_ABOVE' }] as never,
  }),
  'a MIME type of the response without a schema': configured({ responseMimeType: 'application/json' }),
  penalties: configured({ presencePenalty: 0.3, frequencyPenalty: 0.4 }),
  'a thinking budget': configured({ thinkingConfig: { thinkingBudget: 128 } }),
  'a thinking budget that the model chooses': configured({ thinkingConfig: { thinkingBudget: -1 } }),
  'modalities of the response': configured({ responseModalities: ['TEXT'] }),
  'log probabilities': configured({ responseLogprobs: true, logprobs: 2 }),
  'the resolution of media': configured({ mediaResolution: 'MEDIA_RESOLUTION_LOW' as never }),
  'one candidate': configured({ candidateCount: 1 }),
}
