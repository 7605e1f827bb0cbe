// The real program in a real pseudo-terminal: keys in, a screen out.
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { billedBy, startBilling } from '../support/billing-provider.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'
import { folderFor, READY, say, serve, start } from './chat-stage.js'
import { lango } from './lango.js'

// Each start loads the whole runtime; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 120_000 })

test('/budget continues a run of the chat that ended at its budget', async () => {
  const { server } = await startBilling(() => ({ text: 'Here it is.' }))
  onTestFinished(() => server.close())
  const cwd = await temporaryFolder()
  const config = { providers: { bank: billedBy(server) }, agent: { model: 'bank/bill-1' } }
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify(config))
  const chat = start({ cwd, args: ['chat', '--budget', '0.0001'] })
  await chat.waitFor(READY)
  say(chat, 'Where is it?')
  await chat.waitFor('/budget 0.50 goes on')
  expect(server.requests).toEqual([])
  say(chat, '/budget none')
  await chat.waitFor('Give an amount in dollars')
  say(chat, '/budget 0.25')
  await chat.waitFor('Here it is.')
  await chat.waitUntilGone('Ctrl-C stops')
  say(chat, '/budget 0.25')
  await chat.waitFor('did not end at its budget')
})

test('without a key the demo answers in the chat, asks before it writes, and the session continues after a restart', async () => {
  const cwd = await temporaryFolder()
  const first = start({ cwd })
  await first.waitFor(READY)
  expect(first.screen()).toContain(
    'offline demo: no key was found. For a real model: export OPENAI_API_KEY=…',
  )
  expect(first.screen()).toContain('demo/demo (offline)')

  say(first, 'Hello there')
  await first.waitFor('You said: "Hello there"')
  await first.waitUntilGone('Ctrl-C stops')
  // The line is drawn again a moment later.
  await first.waitFor(/\d+ in, \d+ out · free/)

  say(first, 'please write notes.txt')
  await first.waitFor('Allow write_file?')
  expect(first.screen()).toMatch(/path +notes\.txt/)
  expect(existsSync(join(cwd, 'notes.txt'))).toBe(false)
  first.type('o')
  await first.waitFor(/✓ write_file\(path: "notes\.txt".* · \d+ ms · allowed once/)
  await first.waitUntilGone('Ctrl-C stops')
  expect(existsSync(join(cwd, 'notes.txt'))).toBe(true)

  first.key('ctrl-d')
  expect(await first.ended()).toBe(0)
  const session = /Continue with: lango chat --session ([a-z]+-[a-z]+-\d+)/.exec(first.all())?.[1]
  expect(session, first.all()).toBeDefined()
  expect(first.screen()).not.toContain('──────')
  // The terminal is given back as it was: pastes unmarked, the cursor seen.
  const goodbye = first.output.slice(-400)
  expect(goodbye).toContain('\u001b[?2004l')
  expect(goodbye).toContain('\u001b[?25h')

  const second = start({ cwd, args: ['chat', '--session', String(session)] })
  await second.waitFor('› please write notes.txt')
  expect(second.all()).toContain('› Hello there')
  expect(second.screen()).not.toContain('interrupted')
  say(second, '/inspect')
  await second.waitFor(/step 1 · demo\/demo · rules of openai-chat\n +stored +2 messages/)
  second.key('up')
  second.key('up')
  await second.waitFor(/^ please write notes\.txt$/m)
  second.key('ctrl-c')
  second.key('ctrl-c')
  expect(await second.ended()).toBe(0)
})

test('the chat shows words as they arrive, Ctrl-C stops them, and the next message works', async () => {
  const server = await serve({
    profile: 'openai-chat',
    script: [{ deltas: ['First ', 'words, ', 'more ', 'words.'] }, { text: 'After the stop.' }],
    faults: [{ at: 0, kind: 'hang', afterEvents: 4 }],
  })
  const terminal = start({ cwd: await folderFor(server) })
  await terminal.waitFor(READY)
  say(terminal, 'Go')
  await terminal.waitFor('First')
  expect(terminal.screen()).toContain('answering…')
  terminal.key('ctrl-c')
  await terminal.waitFor('· stopped')
  await terminal.waitUntilGone('answering…')
  say(terminal, 'And now?')
  await terminal.waitFor('words.')
  expect(server.violations).toEqual([])
  say(terminal, '/quit')
  expect(await terminal.ended()).toBe(0)
})

test('another provider continues a chat, and /inspect shows what it was sent', async () => {
  const chat = await serve({
    profile: 'openai-chat',
    script: [{ toolCalls: [{ name: 'read_file', args: { path: 'a.txt' } }] }, { text: 'It says hello.' }],
  })
  const claude = await serve({
    profile: 'anthropic-4.6',
    script: [{ text: 'I am **another** model.', thinking: 'Who am I? A secret thought.' }],
  })
  const cwd = await folderFor(chat, claude)
  await writeFile(join(cwd, 'a.txt'), 'hello')
  const terminal = start({ cwd, columns: 160, rows: 50 })
  await terminal.waitFor(READY)
  say(terminal, 'Read a.txt')
  await terminal.waitFor('It says hello.')
  await terminal.waitUntilGone('Ctrl-C stops')
  expect(terminal.screen()).toMatch(
    / {2}✓ read_file\(path: "a\.txt"\) · \d+ ms\n {4}→ path: "a\.txt", .*hello/,
  )

  say(terminal, '/model nobody/x')
  await terminal.waitFor('Cannot find the model "nobody/x"')
  say(terminal, '/model mistral/mistral-large-latest')
  await terminal.waitFor('There is no API key for mistral/mistral-large-latest. Leave, set MISTRAL_API_KEY')
  say(terminal, '/model')
  await terminal.waitFor('Choose a model · type to narrow')
  terminal.type('claude')
  await terminal.waitFor(/→ claude\/\S+/)
  const name = /→ (claude\/\S+)/.exec(terminal.screen())?.[1]
  terminal.key('enter')
  await terminal.waitFor(`model: ${name}, from here on`)

  say(terminal, 'Who are you?')
  await terminal.waitFor('I am another model.')
  await terminal.waitUntilGone('Ctrl-C stops')
  expect(claude.violations).toEqual([])
  expect(claude.requests).toHaveLength(1)
  expect(terminal.screen()).toContain('✻ reasoning 6 words · Ctrl-R shows it')
  expect(terminal.screen()).not.toContain('A secret thought.')
  terminal.key('ctrl-r')
  await terminal.waitFor('A secret thought.')

  say(terminal, '/inspect')
  await terminal.waitFor(/step 1 · claude\/\S+ · rules of anthropic-4\.6/)
  expect(terminal.screen()).toMatch(
    /stored +4 messages.*\n +cut +nothing\n +history +\d+ messages.*\n +repaired/,
  )
  expect(terminal.screen()).toMatch(/sent +\d+ messages/)
})

const write = (path: string) => ({ toolCalls: [{ name: 'write_file', args: { path, content: 'text' } }] })

test('approvals in the chat are refused, given once by arrow and Enter, and given for all calls', async () => {
  const server = await serve({
    profile: 'openai-chat',
    script: [
      ...[write('refused.txt'), { text: 'First done.' }],
      ...[write('once.txt'), { text: 'Second done.' }],
      ...[write('always.txt'), write('again.txt'), { text: 'Third done.' }],
    ],
  })
  const cwd = await folderFor(server)
  const terminal = start({ cwd })
  const written = (name: string) => existsSync(join(cwd, name))
  await terminal.waitFor(READY)

  say(terminal, 'one')
  await terminal.waitFor('Allow write_file?')
  terminal.type('n')
  await terminal.waitFor('First done.')
  expect(terminal.all()).toMatch(/✗ write_file\(path: "refused\.txt".*refused/)
  expect(written('refused.txt')).toBe(false)

  say(terminal, 'two')
  await terminal.waitFor(/path +once\.txt/)
  terminal.key('down')
  await terminal.waitFor('→ a  always')
  terminal.key('up')
  await terminal.waitFor('→ o  once')
  terminal.key('enter')
  await terminal.waitFor('Second done.')
  expect(written('once.txt')).toBe(true)

  say(terminal, 'three')
  await terminal.waitFor(/path +always\.txt/)
  terminal.type('a')
  await terminal.waitFor('Third done.')
  expect([written('always.txt'), written('again.txt')]).toEqual([true, true])
  expect(server.violations).toEqual([])
})

test('the approval of a command without a sandbox says so', LONG, async () => {
  const toolCalls = [{ name: 'run_command', args: { command: 'touch ran.txt' } }]
  const server = await serve({ profile: 'openai-chat', script: [{ toolCalls }, { text: 'Not run.' }] })
  const cwd = await temporaryFolder()
  const config = {
    providers: { fake: { type: 'openai-compatible', baseUrl: server.baseUrl, apiKey: 'test' } },
    agent: { model: 'fake/gpt-4.1', tools: ['run_command'] },
    tools: { sandbox: 'off' },
  }
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify(config))
  const terminal = start({ cwd })
  await terminal.waitFor(READY)
  say(terminal, 'run it')
  await terminal.waitFor(/Allow run_command\? The command runs without a sandbox on this\s+machine/)
  terminal.type('n')
  await terminal.waitFor('Not run.')
  expect(existsSync(join(cwd, 'ran.txt'))).toBe(false)
})

test('an approval is not given by keys of a message that is being typed, nor by Ctrl-C', async () => {
  const server = await serve({
    profile: 'openai-chat',
    script: [write('typed.txt'), { text: 'Answered.' }],
  })
  const cwd = await folderFor(server)
  const terminal = start({ cwd })
  await terminal.waitFor(READY)
  say(terminal, 'write it')
  const words = 'ooo nothing of an answer '
  // Somebody writes on while the question comes up. All of it is text.
  for (let index = 0; !terminal.screen().includes('Allow write_file?') && index < 2_000; index++) {
    terminal.type(words.charAt(index % words.length))
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  terminal.key('newLine')
  terminal.type('aaa')
  await terminal.waitFor(/^ aaa$/m)
  expect(terminal.screen()).toContain('Allow write_file?')
  terminal.key('ctrl-c')
  await terminal.waitFor('· stopped')
  await terminal.waitUntilGone('Allow write_file?')
  expect(existsSync(join(cwd, 'typed.txt'))).toBe(false)
})

test('the chat shows control sequences of models, tools and files as text', async () => {
  const evil = 'x\u001b]52;c;ZXZpbA==\u0007y\u001b]0;owned\u0007\u001b[2Jz\u009b31m'
  const server = await serve({
    profile: 'openai-chat',
    script: [
      {
        text: `Before ${evil} after.`,
        toolCalls: [{ name: 'read_file', args: { path: `a${evil}b` } }],
      },
      { text: 'Survived.' },
    ],
  })
  const terminal = start({ cwd: await folderFor(server) })
  await terminal.waitFor(READY)
  say(terminal, 'Go')
  await terminal.waitFor('Survived.')
  expect(terminal.all()).toContain('Before xyz after.')
  expect(terminal.output).not.toContain('\u001b]52')
  expect(terminal.output).not.toContain('\u001b]0;')
  expect(terminal.output).not.toContain('\u009b')
})

test('the chat keeps its shape with wide characters, in every size of the terminal', LONG, async () => {
  const wide = '한국어 日本語 中文 👩‍👩‍👧 🎉 '
  const table = `| name | 値段 |\n|---|---|\n| りんご 🍎 | 100 |\n| x | 2 |`
  const server = await serve({
    profile: 'openai-chat',
    script: [{ text: `${wide.repeat(12)}\n\n${table}\n\n${'w'.repeat(200)}\n\nThe end.` }],
  })
  const terminal = start({ cwd: await folderFor(server) })
  await terminal.waitFor(READY)
  terminal.type(`question ${wide}`)
  terminal.key('newLine')
  say(terminal, 'second line')
  await terminal.waitFor('The end.')
  await terminal.waitUntilGone('Ctrl-C stops')
  for (const [columns, rows] of [
    [160, 50],
    [40, 15],
    [9, 5],
    [80, 24],
  ] as const) {
    await terminal.resize(columns, rows)
    await terminal.waitFor(new RegExp(`^─{${columns}}$`, 'm'))
    if (columns < 40) continue
    await terminal.waitFor(/│ りんご 🍎 +│ 100/)
    expect(terminal.all().match(/› question/g), `${columns} columns`).toHaveLength(1)
    const rules = terminal.all().match(/^ +[┌├└│].*$/gm) ?? []
    expect(new Set(rules.map(cells)).size, rules.join('\n')).toBe(1)
  }
  expect(terminal.all()).toContain('  second line')
  // Weight, and the basic colours that can be read on dark and light grounds: no ground of its own.
  const styles = [...terminal.output.matchAll(/\p{Cc}\[([\d;]*)m/gu)].map(([, code]) => code)
  const allowed = [
    '',
    '0',
    '1',
    '2',
    '3',
    '4',
    '7',
    '9',
    '22',
    '23',
    '24',
    '27',
    '29',
    '31',
    '32',
    '35',
    '36',
    '39',
  ]
  expect([...new Set(styles)].filter(code => !allowed.includes(code ?? ''))).toEqual([])
  expect(terminal.all()).toMatch(/› question 한국어 日本語 中文 👩‍👩‍👧 🎉/)
})

test('sessions of the chat are created, chosen and exported, and messages wait for their turn', async () => {
  const server = await serve({
    profile: 'openai-chat',
    script: [{ deltas: ['a', 'b', 'c', 'd'] }, { text: 'First answer.' }, { text: 'Second answer.' }],
    faults: [{ at: 0, kind: 'hang', afterEvents: 3 }],
  })
  const cwd = await folderFor(server)
  const terminal = start({ cwd, args: ['chat', '--session', 'one'] })
  await terminal.waitFor(READY)
  say(terminal, '/nonsense')
  await terminal.waitFor('There is no command /nonsense.')
  say(terminal, '/inspect')
  await terminal.waitFor('there is no run to inspect yet')
  say(terminal, 'hello one')
  await terminal.waitFor('answering…')
  say(terminal, 'waiting behind it')
  await terminal.waitFor('next: waiting behind it')
  say(terminal, '/new')
  await terminal.waitFor('A run is in progress. Stop it with Ctrl-C first.')
  terminal.key('ctrl-c')
  await terminal.waitFor('· stopped')
  // What was waiting is back in the input.
  await terminal.waitFor(/^ waiting behind it$/m)
  terminal.key('enter')
  await terminal.waitFor('› waiting behind it')
  await terminal.waitFor('abcd')
  await terminal.waitUntilGone('Ctrl-C stops')

  say(terminal, '/export out.jsonl')
  await terminal.waitFor(/messages written to\s+\S*out\.jsonl/)
  const [header = '', ...lines] = (await readFile(join(cwd, 'out.jsonl'), 'utf8')).trim().split('\n')
  expect(JSON.parse(header)).toMatchObject({
    lango: 'session',
    key: { sessionId: 'one' },
    messages: lines.length,
  })
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ seq: 1, role: 'user', content: 'hello one' })
  say(terminal, '/export out.jsonl')
  await terminal.waitFor(/the\s+file\s+already\s+exists/)
  say(terminal, '/export talk.md')
  await terminal.waitFor(/messages written to\s+\S*talk\.md/)
  expect(await readFile(join(cwd, 'talk.md'), 'utf8')).toContain('**You:** hello one')

  say(terminal, '/new')
  await terminal.waitFor(/new session: [a-z]+-[a-z]+-\d+/)
  await terminal.waitUntilGone('› hello one')
  say(terminal, 'hello two')
  await terminal.waitFor('First answer.')
  await terminal.waitUntilGone('Ctrl-C stops')
  say(terminal, '/sessions')
  await terminal.waitFor('Choose a session')
  terminal.type('one')
  await terminal.waitUntilGone('hello two ·')
  terminal.key('enter')
  await terminal.waitFor('› hello one')
  await terminal.waitFor('fake/gpt-4.1 · one')
  terminal.kill('SIGTERM')
  expect(await terminal.ended()).toBe(143)
  expect(terminal.all()).toContain('Continue with: lango chat --session one')
})

test('without a terminal, lines in are messages of the chat, and answers are plain text', async () => {
  const cwd = await temporaryFolder()
  const input = 'Hello\n/nonsense\nplease write x.txt\n'
  const { stdout, stderr, code } = await lango(['chat'], { cwd, input })
  expect(stdout).toMatch(/^You said: "Hello"\./)
  expect(stdout).not.toContain('\u001b')
  expect(stderr).toContain('There is no command /nonsense.')
  expect(stderr).toContain('write_file needs approval, and there is no terminal to ask: refused')
  expect(stderr).toMatch(/Continue with: lango chat --session [a-z]+-[a-z]+-\d+\n$/)
  expect(existsSync(join(cwd, 'x.txt'))).toBe(false)
  expect(code).toBe(1)
})

/** Columns that a line takes on a terminal of today. */
function cells(line: string): number {
  const wide =
    /[\p{Emoji_Presentation}\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}]/gu
  return line.length + (line.match(wide) ?? []).filter(character => character.length === 1).length
}
