import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'

/** A run with parallel calls, text next to a call, a chain, reasoning and a streamed answer. */
export const MULTI_TOOL_PLAY: readonly ScriptStep[] = [
  {
    reasoning: 'I should look twice.',
    text: 'Let me look. ',
    toolCalls: [
      { name: 'search', args: { query: 'a' } },
      { name: 'search', args: { query: 'b' } },
    ],
  },
  { toolCalls: [{ name: 'save', args: { note: 'ab' } }] },
  { toolCalls: [{ name: 'search', args: { query: 'c' } }] },
  { deltas: ['It is ', 'a, b ', 'and c.'], usage: { inputTokens: 100, outputTokens: 10 } },
]

export function multiToolProvider(): ScriptedProvider {
  return new ScriptedProvider((_request, index) => MULTI_TOOL_PLAY[index % MULTI_TOOL_PLAY.length] ?? {}, {
    id: 'play',
  })
}
