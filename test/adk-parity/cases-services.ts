// Tools that wait for a person or for later, services that tools use, and tools that the vendor runs.
import {
  type Event,
  ExampleTool,
  FunctionTool,
  GOOGLE_SEARCH,
  getUserChoiceTool,
  InMemoryArtifactService,
  InMemoryMemoryService,
  LoadArtifactsTool,
  LoadMemoryTool,
  LongRunningFunctionTool,
  PreloadMemoryTool,
  URL_CONTEXT,
} from '@google/adk'
import { z } from 'zod'
import { one } from './cases-tools.js'
import { calls, type ParityCase, type Turn } from './parity.js'

/** The newest call of a tool, answered by the client. */
export const answers =
  (name: string, response: Record<string, unknown>): Turn =>
  (events: readonly Event[]) => {
    const asked = events
      .flatMap(({ content }) => content?.parts ?? [])
      .findLast(part => part.functionCall?.name === name)
    return [{ functionResponse: { id: asked?.functionCall?.id ?? '', name, response } }]
  }

const CONFIRMATION = 'adk_request_confirmation'

const pay = (
  journal: string[],
  requireConfirmation: boolean | ((input: { amount: number }) => boolean) = true,
) =>
  new FunctionTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({ amount: z.number() }),
    requireConfirmation,
    execute: ({ amount }) => {
      journal.push(`paid ${amount}`)
      return { paid: amount }
    },
  })

const job = (journal: string[], result: unknown) =>
  new LongRunningFunctionTool({
    name: 'job',
    description: 'Takes long.',
    parameters: z.object({}),
    execute: () => {
      journal.push('job started')
      return result
    },
  })

export const SERVICES: Readonly<Record<string, ParityCase>> = {
  'a long-running tool that returns nothing yet': {
    feature: 'Long-running tools',
    build: ({ agent, journal }) => agent('root', { tools: [job(journal, null)] }),
    scripts: { root: [calls('job'), { text: 'It runs.' }] },
  },
  'a long-running tool with a ticket, answered later': {
    feature: 'Long-running tools',
    build: ({ agent, journal }) => agent('root', { tools: [job(journal, { ticket: 1 })] }),
    scripts: { root: [calls('job'), { text: 'Started.' }, { text: 'Finished.' }] },
    turns: ['go', answers('job', { status: 'done' })],
  },
  'a question to the user': {
    feature: 'Long-running tools',
    build: ({ agent }) => agent('root', { tools: [getUserChoiceTool] }),
    scripts: { root: [calls('get_user_choice', { options: ['a', 'b'] }), { text: 'You chose.' }] },
    turns: ['go', answers('get_user_choice', { result: 'b' })],
  },
  'a confirmation that is given': {
    feature: 'Tool confirmation',
    build: ({ agent, journal }) => agent('root', { tools: [pay(journal)] }),
    scripts: { root: [calls('pay', { amount: 3 }), { text: 'Paid.' }] },
    turns: ['go', answers(CONFIRMATION, { confirmed: true })],
  },
  'a confirmation that is refused': {
    feature: 'Tool confirmation',
    build: ({ agent, journal }) => agent('root', { tools: [pay(journal)] }),
    scripts: { root: [calls('pay', { amount: 3 }), { text: 'Not paid.' }] },
    turns: ['go', answers(CONFIRMATION, { confirmed: false })],
  },
  'a confirmation only for large sums': {
    feature: 'Tool confirmation',
    build: ({ agent, journal }) => agent('root', { tools: [pay(journal, ({ amount }) => amount > 100)] }),
    scripts: { root: [calls('pay', { amount: 3 }), { text: 'Paid.' }] },
  },
  'a confirmation that a tool asks for itself': {
    feature: 'Tool confirmation',
    build: ({ agent, tool, journal }) =>
      agent('root', {
        tools: [
          tool('refund', context => {
            if (context.toolConfirmation) return { refunded: context.toolConfirmation.confirmed }
            context.requestConfirmation({ hint: 'Refund?', payload: { most: 5 } })
            journal.push('asked')
            return { status: 'pending' }
          }),
        ],
      }),
    scripts: { root: [calls('refund'), { text: 'Refunded.' }] },
    turns: ['go', answers(CONFIRMATION, { confirmed: true, payload: { most: 4 } })],
  },
  'a confirmation beside another tool': {
    feature: 'Tool confirmation',
    build: ({ agent, tool, journal }) => agent('root', { tools: [pay(journal), tool('look')] }),
    scripts: {
      root: [{ toolCalls: [{ name: 'pay', args: { amount: 3 } }, { name: 'look' }] }, { text: 'Paid.' }],
    },
    turns: ['go', answers(CONFIRMATION, { confirmed: true })],
  },
  'a credential that a tool asks for': {
    feature: 'Credentials',
    build: ({ agent, tool, journal }) => {
      const authConfig = {
        authScheme: { type: 'apiKey', in: 'header', name: 'x-key' },
        rawAuthCredential: { authType: 'apiKey' },
        credentialKey: 'key',
      } as never
      return agent('root', {
        tools: [
          tool('fetch', context => {
            const credential = context.getAuthResponse(authConfig)
            journal.push(`credential ${credential?.apiKey}`)
            if (credential) return { fetched: true }
            context.requestCredential(authConfig)
            return { status: 'pending' }
          }),
        ],
      })
    },
    scripts: { root: [calls('fetch'), { text: 'Waiting.' }, { text: 'Fetched.' }] },
    turns: [
      'go',
      answers('adk_request_credential', {
        authScheme: { type: 'apiKey', in: 'header', name: 'x-key' },
        exchangedAuthCredential: { authType: 'apiKey', apiKey: 'secret' },
        credentialKey: 'key',
      }),
    ],
  },
  'artifacts that tools save and load': {
    feature: 'Artifacts',
    build: ({ agent, tool }) => ({
      agent: agent('root', {
        tools: [
          tool('save', async context => ({
            version: await context.saveArtifact('note.txt', { text: 'kept' }),
          })),
          tool('load', async context => ({ note: (await context.loadArtifact('note.txt'))?.text })),
        ],
      }),
      artifactService: new InMemoryArtifactService(),
    }),
    scripts: { root: [calls('save'), calls('load'), { text: 'Kept.' }] },
  },
  'artifacts that the model loads': {
    feature: 'Artifacts',
    build: ({ agent, tool }) => ({
      agent: agent('root', {
        tools: [
          tool('save', async context => ({
            version: await context.saveArtifact('note.txt', { text: 'kept' }),
          })),
          new LoadArtifactsTool(),
        ],
      }),
      artifactService: new InMemoryArtifactService(),
    }),
    scripts: {
      root: [calls('save'), calls('load_artifacts', { artifact_names: ['note.txt'] }), { text: 'Read.' }],
    },
  },
  'an artifact in the instruction': {
    feature: 'Artifacts',
    build: ({ agent, tool }) => ({
      agent: agent('root', {
        instruction: 'Note: {artifact.note.txt?}',
        tools: [
          tool('save', async context => ({ v: await context.saveArtifact('note.txt', { text: 'kept' }) })),
        ],
      }),
      artifactService: new InMemoryArtifactService(),
    }),
    scripts: { root: [calls('save'), { text: 'Kept.' }] },
  },
  'uploads that become artifacts': {
    feature: 'Artifacts',
    build: ({ agent }) => ({
      agent: agent('root'),
      artifactService: new InMemoryArtifactService(),
      runConfig: { saveInputBlobsAsArtifacts: true },
    }),
    scripts: { root: [{ text: 'Saved.' }] },
    turns: [[{ inlineData: { mimeType: 'text/plain', data: 'aGk=', displayName: 'hi.txt' } }]],
  },
  'memory that the model asks for': {
    feature: 'Memory tools',
    build: ({ agent }) => ({
      agent: agent('root', { tools: [new LoadMemoryTool()] }),
      memoryService: new InMemoryMemoryService(),
    }),
    scripts: { root: [calls('load_memory', { query: 'tea' }), { text: 'Nothing.' }] },
  },
  'memory that is loaded before': {
    feature: 'Memory tools',
    build: ({ agent }) => ({
      agent: agent('root', { tools: [new PreloadMemoryTool()] }),
      memoryService: new InMemoryMemoryService(),
    }),
    scripts: { root: [{ text: 'Nothing.' }] },
  },
  examples: {
    feature: 'Examples',
    build: ({ agent }) => {
      const input = { role: 'user', parts: [{ text: '2+2' }] }
      return agent('root', {
        tools: [new ExampleTool([{ input, output: [{ role: 'model', parts: [{ text: '4' }] }] }])],
      })
    },
    scripts: { root: [{ text: '6' }] },
  },
  'Google Search': one('Gemini’s own tools', () => GOOGLE_SEARCH, { text: 'Found.' } as never),
  'URL context': one('Gemini’s own tools', () => URL_CONTEXT, { text: 'Read.' } as never),
}
