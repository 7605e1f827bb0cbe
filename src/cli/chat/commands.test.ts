import { expect, test } from 'vitest'
import { COMMANDS, helpLines, readLine } from './commands.js'

test.each([
  ['', { kind: 'nothing' }],
  ['  \n ', { kind: 'nothing' }],
  ['hello', { kind: 'message', text: 'hello' }],
  ['/help', { kind: 'command', name: 'help', argument: '' }],
  ['/MODEL  openai/gpt-5.2 ', { kind: 'command', name: 'model', argument: 'openai/gpt-5.2' }],
  ['/exit', { kind: 'command', name: 'quit', argument: '' }],
  ['/export my file.md', { kind: 'command', name: 'export', argument: 'my file.md' }],
  ['/nonsense', { kind: 'unknown-command', word: 'nonsense' }],
  ['/usr/bin is a folder', { kind: 'message', text: '/usr/bin is a folder' }],
  ['//help me', { kind: 'message', text: '/help me' }],
  ['/', { kind: 'message', text: '/' }],
])('the line %j of the chat is read as %j', (line, expected) => {
  expect(readLine(line)).toEqual(expected)
})

test('the help of the chat names every command', () => {
  for (const { name } of COMMANDS) expect(helpLines().join('\n')).toContain(`/${name}`)
})
