/** Stored histories that ADK's own pass, or the way there, changes; and what must be reported of it. */
import type { ProfileName } from '../../src/provider/repair/profile.js'
import type { Message, ToolCall } from '../../src/session/message.js'

export interface Probe {
  name: string
  messages: Message[]
  /** The kinds of the receipts, by profile where they differ. None: it is sent as it is stored. */
  reports: Partial<Record<ProfileName | 'every', readonly string[]>>
  /** A model that wants pairs would refuse it. */
  refused?: true
}

const at = 1
const user = (content: string): Message => ({ role: 'user', author: 'user', content, timestamp: at })
const said = (content: string, author = 'root'): Message => ({
  role: 'assistant',
  author,
  content,
  timestamp: at,
})
const asks = (id: string, input = '{}', content = ''): Message => ({
  role: 'assistant',
  author: 'root',
  content,
  toolCalls: [call(id, input)],
  timestamp: at,
})
const gives = (id: string, output = `"result of ${id}"`, author = 'root'): Message => ({
  role: 'tool',
  author,
  content: '',
  toolCalls: [response(id, output)],
  timestamp: at,
})
const call = (id: string, input = '{}'): ToolCall => ({
  id,
  name: 'look',
  input,
  kind: 'call',
})
const response = (id: string, output: string): ToolCall => ({ id, name: 'look', output, kind: 'response' })

export const PROBES: readonly Probe[] = [
  { name: 'a pair in order', reports: {}, messages: [user('q'), asks('a'), gives('a'), said('done')] },
  {
    name: 'a result in the role function',
    reports: {},
    messages: [user('q'), asks('a'), { ...gives('a'), role: 'function' }, said('done')],
  },
  {
    name: 'a call and a result without ids',
    reports: { every: ['mint-id', 'adopt-id'] },
    messages: [user('q'), asks(''), gives(''), said('done')],
  },
  {
    name: 'a result without an id',
    reports: { every: ['adopt-id'] },
    messages: [user('q'), asks('a'), gives('', '"result of a"'), said('done')],
  },
  {
    name: 'one id in two turns',
    reports: { every: ['renumber-id'] },
    messages: [
      user('q'),
      asks('a'),
      gives('a', '"first"'),
      said('one'),
      user('r'),
      asks('a'),
      gives('a', '"second"'),
      said('two'),
    ],
  },
  {
    name: 'a call without its result',
    reports: { every: ['synthesize-result'] },
    refused: true,
    messages: [user('q'), asks('a'), said('done')],
  },
  {
    name: 'two parallel calls, one result missing',
    reports: { every: ['group', 'synthesize-result'] },
    refused: true,
    messages: [user('q'), { ...asks('a'), toolCalls: [call('a'), call('b')] }, gives('a'), said('done')],
  },
  {
    name: 'a result without its call',
    reports: { every: ['note'] },
    refused: true,
    messages: [user('q'), said('one'), gives('lost', '"lost words"'), user('r'), said('done')],
  },
  {
    name: 'a result without its call, last',
    reports: { every: ['note'] },
    refused: true,
    messages: [user('q'), said('one'), gives('lost', '"lost words"')],
  },
  {
    name: 'a result without its call next to a text',
    reports: { every: ['note'], 'gemini-3': ['note', 'merge'] },
    refused: true,
    messages: [
      user('q'),
      { ...gives('lost', '"lost words"'), role: 'user', author: 'user', content: 'spoken words' },
      said('done'),
    ],
  },
  { name: 'two user messages in a row', reports: {}, messages: [user('q'), user('r'), said('done')] },
  { name: 'two answers in a row', reports: {}, messages: [user('q'), said('one'), said('two')] },
  {
    name: 'an answer first',
    reports: { every: ['prepend'], 'openai-chat': [] },
    refused: true,
    messages: [said('one'), user('q'), said('done')],
  },
  {
    name: 'a call first',
    reports: { every: ['prepend'], 'openai-chat': [] },
    refused: true,
    messages: [asks('a'), gives('a'), said('done')],
  },
  {
    name: 'a result apart from its call',
    reports: { every: ['move'], 'gemini-3': ['note', 'move'] },
    refused: true,
    messages: [user('q'), asks('a'), user('between'), gives('a'), said('done')],
  },
  {
    name: 'a late result of a person',
    reports: { every: ['note-late', 'synthesize-result'] },
    refused: true,
    messages: [
      user('q'),
      asks('a'),
      said('I wait.'),
      user('between'),
      said('Yes.'),
      gives('a', '"late words"', 'user'),
    ],
  },
  {
    name: 'two different results for one call',
    reports: { every: ['note-duplicate'] },
    refused: true,
    messages: [user('q'), asks('a'), gives('a', '"first words"'), gives('a', '"second words"'), said('done')],
  },
  {
    name: 'the same result twice',
    reports: { every: ['drop-duplicate'] },
    refused: true,
    messages: [user('q'), asks('a'), gives('a', '"first words"'), gives('a', '"first words"'), said('done')],
  },
  {
    name: 'a second result after the answer',
    reports: { every: ['note-duplicate'] },
    refused: true,
    messages: [
      user('q'),
      asks('a'),
      gives('a', '"first words"'),
      said('done'),
      gives('a', '"second words"'),
      said('again'),
    ],
  },
  {
    name: 'an answer by another agent',
    reports: { 'gemini-3': ['merge'] },
    messages: [user('q'), said('foreign words', 'other'), said('done')],
  },
  {
    name: 'a result by an author of its own',
    reports: {},
    messages: [user('q'), asks('a'), gives('a', '"words"', 'tool'), said('done')],
  },
  {
    name: 'an empty text before a call',
    reports: {},
    messages: [
      user('q'),
      { ...asks('a'), extra: { parts: [{ text: '' }, { call: 0 }] } },
      gives('a'),
      said('done'),
    ],
  },
  {
    name: 'an empty message',
    reports: { every: ['drop-message'], 'gemini-3': ['drop-message', 'merge'] },
    messages: [user('q'), said(''), user('r'), said('done')],
  },
  {
    name: 'results in another order than their calls',
    reports: {},
    messages: [
      user('q'),
      { ...asks('a'), toolCalls: [call('a'), call('b')] },
      { ...gives('b'), toolCalls: [response('b', '"of b"'), response('a', '"of a"')] },
      said('done'),
    ],
  },
  {
    name: 'the results of parallel calls in two messages',
    reports: {},
    messages: [
      user('q'),
      { ...asks('a'), toolCalls: [call('a'), call('b')] },
      gives('b'),
      gives('a'),
      said('done'),
    ],
  },
  {
    name: 'a call and its result in one entry',
    reports: {},
    messages: [
      user('q'),
      { ...asks('a'), toolCalls: [{ id: 'a', name: 'look', input: '{}', output: '"both"' }] },
      said('done'),
    ],
  },
  {
    name: 'a result before its call',
    reports: { every: ['move'] },
    refused: true,
    messages: [user('q'), gives('a', '"early words"'), asks('a'), said('done')],
  },
]
