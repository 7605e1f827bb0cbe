import { visibleWidth } from '@earendil-works/pi-tui'
import { expect, test } from 'vitest'
import type { ChatItemBody } from './chat-item.js'
import { itemLines } from './item-lines.js'
import { createTheme } from './theme.js'

const theme = createTheme(true)

function lines(
  item: ChatItemBody,
  width = 40,
  view: { showReasoning?: boolean; agent?: string } = {},
): string[] {
  const found = itemLines({ ...item, id: 1 }, theme, { width, showReasoning: false, agent: 'root', ...view })
  return found.map(line => line.replace(/\p{Cc}\[\d+m/gu, '').trimEnd())
}

const tool = {
  kind: 'tool',
  callId: 'c',
  author: 'root',
  name: 'read_file',
  args: { path: 'a.txt' },
} as const
const outcome = { runId: 'r', idempotencyKey: 'k', policy: 'ask' } as const
const long = { path: 'a folder/with/a/very/long/path/that/does/not/fit.txt' }

test.each([
  [
    'sources',
    {
      kind: 'sources',
      sources: [
        { url: 'https://a.example', title: 'Page A' },
        { url: 'https://b.example/a/long/address', title: 'A title that is long' },
        { url: 'https://c.example' },
      ],
    },
    [
      '  sources',
      '  1 Page A  https://a.example',
      '  2 A title that is long',
      '    https://b.example/a/long/address',
      '  3 https://c.example',
    ],
  ],
  [
    'user',
    { kind: 'user', text: 'one two three four five six seven eight nine' },
    ['› one two three four five six seven', '  eight nine'],
  ],
  ['tool that runs', { ...tool, status: 'running', startedAt: 0 }, ['  ◦ read_file(path: "a.txt")']],
  [
    'tool that has answered',
    { ...tool, status: 'done', durationMs: 12, result: { result: 'line\nline' } },
    ['  ✓ read_file(path: "a.txt") · 12 ms', '    → line line'],
  ],
  [
    'tool with long arguments',
    { ...tool, args: long, status: 'done', durationMs: 12 },
    ['  ✓ read_file(path: "a folder/…) · 12 ms'],
  ],
  ['tool that asks', { ...tool, args: {}, status: 'waiting' }, ['  ? read_file() · waits for you']],
  [
    'tool with an unknown outcome',
    { ...tool, args: {}, status: 'unknown' },
    [
      '  ? read_file() · outcome unknown',
      '    → it was started, and it is not',
      '      known whether it took effect',
    ],
  ],
  [
    'tool whose outcome a person was asked about',
    { ...tool, args: {}, status: 'done', outcome: { ...outcome, answer: 'run' } },
    ['  ✓ read_file() · answered: it did not,…'],
  ],
  ['notice', { kind: 'notice', tone: 'quiet', text: 'stopped' }, ['  · stopped']],
  ['error', { kind: 'notice', tone: 'error', text: 'It failed.' }, ['  ✗ It failed.']],
  [
    'reasoning that is folded',
    { kind: 'reasoning', author: 'root', text: 'a b c' },
    ['  ✻ reasoning 3 words · Ctrl-R shows it'],
  ],
  ['answer of another agent', { kind: 'text', author: 'helper', text: 'Hi.' }, ['  helper', '  Hi.']],
  [
    'panel',
    { kind: 'panel', title: 'T', lines: ['  name   words that go on and on and on', ''] },
    ['  T', '    name   words that go on and on and', '           on', ''],
  ],
] as [string, ChatItemBody, string[]][])('the chat shows this item as lines: %s', (_, item, expected) => {
  expect(lines(item)).toEqual(expected)
})

test('reasoning in the chat is unfolded on request', () => {
  const item = { kind: 'reasoning', author: 'root', text: 'a b c' } as const
  expect(lines(item, 40, { showReasoning: true })).toEqual(['  ✻ reasoning', '    a b c'])
})

test('a long line of code in the chat stays inside its block', () => {
  const text = `\`\`\`ts\nconst name = "${'x'.repeat(40)}"\n\`\`\``
  expect(lines({ kind: 'text', author: 'root', text })).toEqual([
    '  ─── ts',
    '    const name =',
    `    "${'x'.repeat(33)}`,
    `    ${'x'.repeat(7)}"`,
    '  ───',
  ])
})

test('no line of the chat is wider than the terminal', () => {
  const wild = `世界 👩‍👩‍👧 \u001b[31mred ${'w'.repeat(90)} \`code\` | a | b |\n|---|---|\n| 한국어 | ${'x'.repeat(60)} |`
  const items: ChatItemBody[] = [
    { kind: 'user', text: wild },
    { kind: 'text', author: wild, text: wild, streaming: true },
    { kind: 'reasoning', author: '', text: wild },
    {
      ...tool,
      name: wild,
      args: { [wild]: wild },
      status: 'done',
      durationMs: 1,
      result: wild,
      approval: 'always',
    },
    { kind: 'notice', tone: 'warning', text: wild },
    { kind: 'panel', title: 'T', lines: [`  key   ${wild}`, wild] },
  ]
  // From a sliver that nobody uses to a wall; below that the screen itself cuts what is left over.
  for (const width of [20, 33, 80, 200]) {
    for (const item of items) {
      for (const showReasoning of [true, false]) {
        const found = itemLines({ ...item, id: 1 }, theme, { width, showReasoning, agent: '' })
        for (const line of found)
          expect(visibleWidth(line), `${item.kind} in ${width}: ${line}`).toBeLessThanOrEqual(width)
      }
    }
  }
})
