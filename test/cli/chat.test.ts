// The real program in a real pseudo-terminal: keys in, a screen out.
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { StrictProviderOptions } from '../../src/testing/start-strict-provider.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { type TerminalOptions, TestTerminal } from '../support/terminal.js'

const open: { terminals: TestTerminal[]; servers: StrictProvider[] } = { terminals: [], servers: [] }

afterEach(async () => {
  for (const terminal of open.terminals.splice(0)) terminal.kill()
  await Promise.all(open.servers.splice(0).map(server => server.close()))
})

function start(options: TerminalOptions): TestTerminal {
  const terminal = new TestTerminal(options)
  open.terminals.push(terminal)
  return terminal
}

async function serve(options: StrictProviderOptions): Promise<StrictProvider> {
  const server = await startStrictProvider(options)
  open.servers.push(server)
  return server
}

/** A folder with a configuration that knows a server of each kind. */
async function folderFor(chat: StrictProvider, claude: StrictProvider = chat): Promise<string> {
  const folder = await temporaryFolder()
  const config = {
    providers: {
      fake: { type: 'openai-compatible', baseUrl: chat.baseUrl, apiKey: 'test', profile: 'openai-chat' },
      claude: { type: 'anthropic', baseUrl: claude.baseUrl, apiKey: 'test' },
    },
    agent: { model: 'fake/gpt-4.1', tools: ['read_file', 'write_file'] },
  }
  await writeFile(join(folder, 'lango.config.json'), JSON.stringify(config))
  return folder
}

function say(terminal: TestTerminal, text: string): void {
  terminal.type(text)
  terminal.key('enter')
}

const READY = '/help lists'

describe('without a key', () => {
  test('the demo answers, asks before it writes, and the session goes on after a restart', async () => {
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
    expect(first.screen()).toMatch(/\d+ in, \d+ out · \$0/)

    say(first, 'please write a file notes.txt')
    await first.waitFor('Allow write_file?')
    expect(first.screen()).toMatch(/path +notes\.txt/)
    expect(existsSync(join(cwd, 'notes.txt'))).toBe(false)
    first.type('o')
    await first.waitFor(/✓ write_file\(path: "notes\.txt".* · \d+ ms · allowed once/)
    await first.waitUntilGone('Ctrl-C stops')
    expect(existsSync(join(cwd, 'notes.txt'))).toBe(true)

    first.key('ctrl-d')
    expect(await first.ended()).toBe(0)
    const session = /Go on with: lango chat --session ([a-z]+-[a-z]+-\d+)/.exec(first.all())?.[1]
    expect(session, first.all()).toBeDefined()
    expect(first.screen()).not.toContain('──────')

    const second = start({ cwd, args: ['--session', String(session)] })
    await second.waitFor('› please write a file notes.txt')
    expect(second.all()).toContain('› Hello there')
    expect(second.screen()).not.toContain('interrupted')
    say(second, '/inspect')
    await second.waitFor(/step 1 · demo\/demo · rules of openai-chat\n +stored +2 messages/)
    second.key('up')
    second.key('up')
    await second.waitFor(/^ please write a file notes\.txt$/m)
    second.key('ctrl-c')
    second.key('ctrl-c')
    expect(await second.ended()).toBe(0)
  })
})

describe('with a provider', () => {
  test('words appear as they come, Ctrl-C stops them, and the next message works', async () => {
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

  test('another provider takes over in the middle, and /inspect shows what it was sent', async () => {
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
    say(terminal, '/model')
    await terminal.waitFor('Choose a model')
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
})
