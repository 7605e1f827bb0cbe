import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Message, SessionKey } from '../../src/session/message.js'
import { openStore } from '../../src/store/open-store.js'
import { createDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, outcomeOf, startLango } from './lango.js'

const KEY: SessionKey = { appName: 'lango', userId: 'user', sessionId: 's1' }

/** Texts that are easily lost: NUL, half a surrogate pair, line separators inside JSON, a marker of the store. */
const HARD_TEXT = 'nul \0 half \ud83d end, \u2028 and \u2029, \u0001"x", \r\n, 漢字 😀'

const HARD_MESSAGES: Message[] = [
  { role: 'user', author: 'user', content: HARD_TEXT, timestamp: 1, id: 'e1', invocationId: 'i1' },
  {
    role: 'assistant',
    author: 'agent',
    content: '',
    timestamp: 2.5,
    branch: 'a.b',
    toolCalls: [
      { id: 'c\0', name: 'look', input: '{"n":12345678901234567890}', signature: 'c2ln+/=', kind: 'call' },
    ],
  },
  {
    role: 'function',
    content: '{"found":"a"}\n{"found":"b"}',
    timestamp: -3,
    toolCalls: [
      { id: 'c\0', name: 'look', output: '{"found":"a"}' },
      { id: '', name: '', output: '{"found":"b"}' },
    ],
  },
  {
    role: 'odd role',
    content: 'picture',
    timestamp: 4,
    extra: {
      parts: [{ inlineData: { mimeType: 'image/png', data: 'AAECAwQ='.repeat(2000) } }],
      nested: { 'k\ud800': [null, 0.1] },
    },
  },
]

async function fill(url: string, key: SessionKey, messages: readonly Message[], state = {}): Promise<void> {
  const store = await openStore(url)
  await store.createSession(key, state, { title: 'Hölidays' })
  for (const message of messages) await store.appendMessage(key, message)
  await store.close()
}

/** What a second export of the same content may differ in: when the session was made. */
function withoutTimes(jsonl: string): string {
  return jsonl.replaceAll(/"createdAt":\d+/g, '"createdAt":0')
}

test('export and import of hard text, signatures, blobs, odd rows and an empty session are lossless', async () => {
  const cwd = await temporaryFolder()
  const state = { zebra: { a: [1, null] }, apple: HARD_TEXT, 'app:shared': 1, 'user:name': 'Ann' }
  await fill(`sqlite:${cwd}/one.db`, KEY, HARD_MESSAGES, state)
  await fill(`sqlite:${cwd}/one.db`, { ...KEY, userId: 'ann', sessionId: 'empty' }, [])
  const out = join(cwd, 'one.jsonl')
  const exported = await lango(['sessions', 'export', '--all', '-o', out, '--store', 'sqlite:./one.db'], {
    cwd,
  })
  expect(exported).toEqual({
    code: 0,
    stdout: '',
    stderr: `Exported 2 sessions with 4 messages to ${out}.\n`,
  })
  const imported = await lango(['sessions', 'import', out, '--store', 'sqlite:./two.db'], { cwd })
  expect(imported.stdout).toContain('Imported s1 of user user: 4 messages.\n')
  expect(imported.stdout).toContain('Imported empty of user ann: 0 messages.\n')
  const [first, second, piped] = [
    await readFile(out, 'utf8'),
    await lango(['sessions', 'export', 's1', 'empty', '--store', 'sqlite:./two.db'], { cwd }),
    await lango(['sessions', 'import', '-', '--store', 'sqlite:./three.db', '--json'], {
      cwd,
      input: await readFile(out, 'utf8'),
    }),
  ]
  const sorted = (text: string) => withoutTimes(text).split('\n').sort().join('\n')
  expect(sorted(second.stdout)).toBe(sorted(first))
  expect(first).toContain('"title":"Hölidays"')
  expect(JSON.parse(piped.stdout).imported).toHaveLength(2)
  const store = await openStore(`sqlite:${cwd}/two.db`)
  const restored = await store.readMessages(KEY)
  expect(restored.map(({ seq: _seq, tokens: _tokens, ...message }) => message)).toEqual(HARD_MESSAGES)
  expect((await store.loadSession(KEY))?.state).toEqual(state)
  await store.close()
  expect((await readdir(cwd)).filter(name => name.includes('partial'))).toEqual([])
  // An export may hold anything that was said.
  expect((await stat(out)).mode & 0o077).toBe(0)
})

test('export and import move a session from SQLite to PostgreSQL and back without loss', async () => {
  const cwd = await temporaryFolder()
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  await fill(`sqlite:${cwd}/lango.db`, KEY, HARD_MESSAGES, { apple: HARD_TEXT })
  const first = await lango(['sessions', 'export', 's1'], { cwd })
  const env = { LANGO_STORE: database.url }
  expect(await lango(['sessions', 'import', '-'], { cwd, env, input: first.stdout })).toMatchObject({
    code: 0,
  })
  const second = await lango(['sessions', 'export', 's1'], { cwd, env })
  expect(withoutTimes(second.stdout)).toBe(withoutTimes(first.stdout))
})

test('export and import of 1,500 messages are byte-identical', async () => {
  const cwd = await temporaryFolder()
  const messages = Array.from({ length: 1500 }, (_, index) => ({
    role: index % 2 ? 'assistant' : 'user',
    content: `message ${index} ${'x'.repeat(index % 50)}`,
    timestamp: index,
    id: `e${index}`,
  }))
  await fill(`sqlite:${cwd}/one.db?sync=normal`, KEY, messages)
  const first = await lango(['sessions', 'export', 's1', '--store', 'sqlite:./one.db'], { cwd })
  await writeFile(join(cwd, 'long.jsonl'), first.stdout)
  const args = ['sessions', 'import', 'long.jsonl', '--store', 'sqlite:./two.db?sync=normal']
  expect((await lango(args, { cwd })).stdout).toBe('Imported s1 of user user: 1,500 messages.\n')
  const second = await lango(['sessions', 'export', 's1', '--store', 'sqlite:./two.db'], { cwd })
  expect(first.stdout.split('\n')).toHaveLength(1502)
  expect(withoutTimes(second.stdout)).toBe(withoutTimes(first.stdout))
})

test('an import of a file that is not complete is refused, and nothing of it is stored', async () => {
  const cwd = await temporaryFolder()
  await fill(`sqlite:${cwd}/lango.db`, KEY, HARD_MESSAGES)
  const { stdout } = await lango(['sessions', 'export', 's1'], { cwd })
  const lines = stdout.trimEnd().split('\n')
  await Promise.all([
    writeFile(join(cwd, 'cut.jsonl'), stdout.slice(0, -100)),
    writeFile(join(cwd, 'short.jsonl'), `${lines.slice(0, 3).join('\n')}\n`),
    writeFile(join(cwd, 'headless.jsonl'), lines.slice(1).join('\n')),
    writeFile(join(cwd, 'newer.jsonl'), stdout.replace('"version":1', '"version":2')),
    writeFile(join(cwd, 'wrong.jsonl'), `${lines[0]?.replace('"messages":4', '"messages":1')}\n{"role":5}\n`),
    writeFile(join(cwd, 'twice.jsonl'), [lines[0], lines[1], ...lines.slice(1, 4)].join('\n')),
    // What a terminal would take for a command.
    writeFile(join(cwd, 'text.jsonl'), '\u001b]0;owned\u0007hello\n'),
    writeFile(join(cwd, 'empty.jsonl'), ''),
  ])
  const cases = {
    'cut.jsonl':
      /^lango: Line 5 of cut\.jsonl is not JSON .* it was truncated\. Session "s1" was not imported\.\n$/,
    'short.jsonl': /should have 4 messages, but the file contains 2: it was truncated or modified\. Session/,
    'headless.jsonl': /Line 1 of headless\.jsonl is not a session header/,
    'newer.jsonl': /has version 2, but this version of Lango reads version 1\. Update Lango\./,
    'wrong.jsonl': /message\.role must be a string, not 5\. Session/,
    'twice.jsonl': /Message 2 has the id of message 1 \("e1"\): the file was modified\. Session/,
    'text.jsonl': /^lango: text\.jsonl is not JSON[^\p{Cc}]*\n$/u,
    'empty.jsonl': /empty\.jsonl is empty\./,
    'absent.jsonl': /absent\.jsonl does not exist\./,
  }
  const check = async ([file, message]: [string, RegExp]) => {
    // Each for a user of its own: they run at the same time, and would find each other's session.
    const place = ['--store', 'sqlite:./other.db', '--user', file]
    const refused = await lango(['sessions', 'import', file, ...place], { cwd })
    expect(refused, file).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) })
    expect(refused.stderr.trimEnd().split('\n')).toHaveLength(1)
  }
  await Promise.all(Object.entries(cases).map(check))
  const left = await lango(['sessions', 'list', '--json', '--store', 'sqlite:./other.db'], { cwd })
  expect(JSON.parse(left.stdout)).toEqual({ sessions: [] })
})

test('an import overwrites no session and no shared state; --as, --user and --app give another place', async () => {
  const cwd = await temporaryFolder()
  await fill(`sqlite:${cwd}/lango.db`, KEY, HARD_MESSAGES, { 'app:level': 'old', own: 1 })
  const { stdout } = await lango(['sessions', 'export', 's1'], { cwd })
  await writeFile(join(cwd, 's1.jsonl'), stdout)
  const store = await openStore(`sqlite:${cwd}/lango.db`)
  await store.updateState(KEY, { 'app:level': 'new' })
  const again = await lango(['sessions', 'import', 's1.jsonl'], { cwd })
  expect(again).toMatchObject({
    code: 1,
    stderr: 'lango: Session "s1" of user "user" already exists. Import it under another id with --as.\n',
  })
  const elsewhere = [
    'sessions',
    'import',
    's1.jsonl',
    '--as',
    's2',
    '--user',
    'ann',
    '--app',
    'shop',
    '--json',
  ]
  const copied = await lango(elsewhere, { cwd })
  const place = { appName: 'shop', userId: 'ann', sessionId: 's2' }
  expect(JSON.parse(copied.stdout)).toEqual({
    unknownAgents: ['agent'],
    imported: [{ ...place, messages: 4 }],
  })
  expect((await lango(['sessions', 'import', 's1.jsonl', '--as', 's3'], { cwd })).code).toBe(0)
  const third = await store.loadSession({ ...KEY, sessionId: 's3' })
  expect(third?.state).toEqual({ 'app:level': 'new', own: 1 })
  await store.close()
})

test('ADK session JSON is imported', async () => {
  const cwd = await temporaryFolder()
  const event = {
    id: 'e1',
    invocationId: 'i',
    author: 'user',
    timestamp: 1_700_000_000_000,
    content: { role: 'user', parts: [{ text: 'hi' }] },
    actions: {},
  }
  const session = {
    id: 'adk-1',
    appName: 'other',
    userId: 'bob',
    state: {},
    events: [event],
    lastUpdateTime: 1,
  }
  await writeFile(join(cwd, 'session.json'), JSON.stringify(session))
  const imported = await lango(['sessions', 'import', 'session.json'], { cwd })
  expect(imported).toMatchObject({
    code: 0,
    stdout: 'Imported adk-1 of user bob: 1 message.\n',
    stderr: expect.stringContaining('They belong to the app "other", not "lango"'),
  })
})

test('an interrupted import stores nothing of the session that it was reading', async () => {
  const cwd = await temporaryFolder()
  const url = `sqlite:${cwd}/lango.db`
  const child = startLango(['sessions', 'import', '-'], { cwd, input: null })
  const header = JSON.stringify({ lango: 'session', version: 1, key: KEY, state: {}, messages: 1000 })
  // Messages are stored in groups: the input stays open after the first one.
  const lines = Array.from({ length: 300 }, (_, index) => {
    return JSON.stringify({ role: 'user', content: `Message ${index}`, timestamp: index })
  })
  child.stdin?.write(`${[header, ...lines].join('\n')}\n`)
  const ended = outcomeOf(child)
  await expect.poll(async () => (existsSync(join(cwd, 'lango.db')) ? messagesIn(url) : 0)).toBeGreaterThan(0)
  child.kill('SIGINT')
  expect(await ended).toMatchObject({
    code: 130,
    stdout: '',
    stderr: expect.stringMatching(/^lango: .*Session "s1" was not imported\.\n$/),
  })
  expect(await messagesIn(url)).toBe(0)
})

async function messagesIn(url: string): Promise<number> {
  const store = await openStore(url)
  try {
    return (await store.loadSession(KEY))?.totalMessages ?? 0
  } finally {
    await store.close()
  }
}

test('listing sessions creates no file, and the suggested next command has all options', async () => {
  const cwd = await temporaryFolder()
  const [listed, shown] = await Promise.all([
    lango(['sessions', 'list'], { cwd }),
    lango(['sessions', 'show', 's1'], { cwd }),
  ])
  expect(listed).toMatchObject({ code: 0, stderr: 'No sessions in the app "lango".\n' })
  expect(shown).toMatchObject({ code: 1, stderr: expect.stringContaining('No session "s1"') })
  expect(await readdir(cwd)).toEqual([])
  const place = ['--app', 'shop', '--store', 'sqlite:./my sessions.db']
  for (const sessionId of ['s1', 's2'])
    await fill(`sqlite:${cwd}/my sessions.db`, { ...KEY, appName: 'shop', sessionId }, HARD_MESSAGES)
  const [page, newest] = await Promise.all([
    lango(['sessions', 'list', '--limit', '1', ...place], { cwd }),
    lango(['sessions', 'show', 's1', '--limit', '1', ...place], { cwd }),
  ])
  const again = "--app shop --store 'sqlite:./my sessions.db'"
  expect(page.stderr).toContain(`lango sessions list --limit 1 ${again} --cursor `)
  expect(newest.stderr).toContain(`lango sessions show s1 --limit 1 ${again} --before 4`)
})

test('sessions list pages through 2,500 sessions', async () => {
  const cwd = await temporaryFolder()
  const store = await openStore(`sqlite:${cwd}/lango.db?sync=normal`)
  for (let index = 0; index < 2_500; index += 1) {
    await store.createSession({
      appName: 'lango',
      userId: index % 2 ? 'ann' : 'user',
      sessionId: `s${index}`,
    })
  }
  await store.close()
  const [first, last, past, all] = await Promise.all([
    lango(['sessions', 'list'], { cwd, env: { COLUMNS: '80' } }),
    lango(['sessions', 'list', '--limit', '750', '--page', '4', '--json'], { cwd }),
    lango(['sessions', 'list', '--page', '52'], { cwd }),
    lango(['sessions', 'list', '--limit', '20000', '--user', 'ann', '--json'], { cwd }),
  ])
  const lines = first.stdout.trimEnd().split('\n')
  expect(lines).toHaveLength(51)
  expect(lines[0]).toMatch(/^SESSION +USER +MESSAGES +UPDATED +TITLE OR LAST MESSAGE$/)
  const next = /^More: lango (sessions list --cursor \S+)\n$/.exec(first.stderr)?.[1]
  expect(JSON.parse(last.stdout).sessions).toHaveLength(250)
  expect(past).toMatchObject({ code: 0, stdout: '', stderr: 'No more sessions.\n' })
  expect(JSON.parse(all.stdout).sessions).toHaveLength(1250)
  const second = await lango([...(next ?? '').split(' '), '--json'], { cwd })
  const ids = new Set(
    JSON.parse(second.stdout).sessions.map((session: { key: SessionKey }) => session.key.sessionId),
  )
  expect(ids.size).toBe(50)
  expect(lines.some(line => ids.has(line.split(' ')[0] ?? ''))).toBe(false)
})

test('a session is found under its only user, and shown for people, as JSON and raw', async () => {
  const cwd = await temporaryFolder()
  await fill(`sqlite:${cwd}/lango.db`, { ...KEY, userId: 'ann' }, [
    ...HARD_MESSAGES,
    {
      role: 'assistant',
      author: 'agent',
      content: 'clear \u001b[2J\u001b]52;c;eA==\u0007 the screen',
      timestamp: 5,
    },
  ])
  const [shown, before, json, raw, wrong, near, list] = await Promise.all([
    lango(['sessions', 'show', 's1'], { cwd }),
    lango(['sessions', 'show', 's1', '--before', '3', '--limit', '1'], { cwd }),
    lango(['sessions', 'show', 's1', '--json', '--limit', '2'], { cwd }),
    lango(['sessions', 'show', 's1', '--raw'], { cwd }),
    lango(['sessions', 'show', 's1', '--user', 'bob'], { cwd }),
    lango(['sessions', 'show', 's'], { cwd }),
    lango(['sessions', 'list', '--search', 'hÖli'], { cwd }),
  ])
  expect(shown.stdout).toMatch(/^s1: Hölidays\nuser ann · app lango · 5 messages\ncreated /)
  expect(shown.stdout).toContain('→ look {"n":12345678901234567890}')
  expect(shown.stdout).toContain('← look {"found":"a"}')
  expect(shown.stdout).toContain('clear  the screen')
  expect(shown.stdout).not.toContain('\u001b')
  expect(before.stdout).toContain('#2 ·')
  expect(before.stdout).not.toContain('#1 ·')
  expect(before.stderr).toContain('lango sessions show s1 --limit 1 --before 2')
  expect(JSON.parse(json.stdout)).toMatchObject({
    key: { userId: 'ann' },
    totalMessages: 5,
    messages: [{ seq: 4 }, { seq: 5 }],
  })
  expect(
    raw.stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).seq),
  ).toEqual([1, 2, 3, 4, 5])
  expect(wrong).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('No session "s1" of the user "bob".'),
  })
  expect(near.stderr).toContain('No session "s" in the app "lango". Did you mean s1?')
  expect(list.stdout).toContain('Hölidays')
})

test('deleting sessions needs --yes, and names those that do not exist', async () => {
  const cwd = await temporaryFolder()
  await fill(`sqlite:${cwd}/lango.db`, KEY, HARD_MESSAGES)
  await fill(`sqlite:${cwd}/lango.db`, { ...KEY, sessionId: 's2' }, [])
  const unsure = await lango(['sessions', 'delete', 's1'], { cwd })
  expect(unsure).toMatchObject({ code: 1, stderr: expect.stringContaining('Pass --yes') })
  const partly = await lango(['sessions', 'delete', 's1', 'nowhere', '--yes', '--json'], { cwd })
  expect(partly.code).toBe(1)
  expect(JSON.parse(partly.stdout)).toEqual({ deleted: ['s1'], missing: ['nowhere'] })
  const rest = await lango(['sessions', 'delete', 's2', '--yes'], { cwd })
  expect(rest).toMatchObject({ code: 0, stdout: 'Deleted 1 session: s2.\n', stderr: '' })
})

test('deleting the last session of a user names the "user:" state that stays and how to erase it', async () => {
  const cwd = await temporaryFolder()
  const url = `sqlite:${cwd}/lango.db`
  await fill(url, KEY, [], { color: 'red', 'user:name': 'Ann' })
  await fill(url, { ...KEY, sessionId: 's2' }, [])
  const first = await lango(['sessions', 'delete', 's1', '--yes'], { cwd })
  expect(first).toMatchObject({ code: 0, stderr: '' })
  const last = await lango(['sessions', 'delete', 's2', '--yes'], { cwd })
  expect(last.stderr).toContain('1 key of "user:" state stays stored (user:name)')
  expect(last.stderr).toContain(`lango erase --user ${KEY.userId}`)
  await fill(url, KEY, [])
  const json = await lango(['sessions', 'delete', 's1', '--yes', '--json'], { cwd })
  expect(JSON.parse(json.stdout)).toMatchObject({ keptUserState: { [KEY.userId]: ['user:name'] } })
})

test('a reader that closes its pipe early ends an export without an error', async () => {
  const cwd = await temporaryFolder()
  const messages = Array.from({ length: 400 }, (_, index) => ({
    role: 'user',
    content: 'x'.repeat(10_000),
    timestamp: index,
  }))
  await fill(`sqlite:${cwd}/lango.db?sync=normal`, KEY, messages)
  const child = startLango(['sessions', 'export', 's1'], { cwd })
  child.stdout?.once('data', () => child.stdout?.destroy())
  const { code, stderr } = await outcomeOf(child)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

test('stores that cannot be opened are reported in one sentence', async () => {
  const cwd = await temporaryFolder()
  await writeFile(join(cwd, 'broken.db'), 'this is no database, but long enough to look like one'.repeat(100))
  const [broken, unknown, noFile] = await Promise.all([
    lango(['sessions', 'list', '--store', 'sqlite:./broken.db'], { cwd }),
    lango(['sessions', 'list', '--store', 'mysql://secret@host'], { cwd }),
    lango(['sessions', 'list', '--config', 'nowhere.json'], { cwd }),
  ])
  expect(broken.stderr).toMatch(/^lango: .*broken\.db is not a usable SQLite database.*\n$/)
  expect(unknown.stderr).toMatch(/^lango: The store URL cannot be used: "mysql:" is not a supported store/)
  expect(unknown.stderr).not.toContain('secret')
  expect(noFile.stderr).toMatch(/^lango: Configuration file .*nowhere\.json does not exist/)
})

test('a path keeps its meaning: a slash at the end names a folder, and .. after a link leaves its target', async () => {
  const cwd = await temporaryFolder()
  await lango(['run', 'hi', '--session', 's1', '--model', 'demo'], { cwd })
  const toFolder = await lango(['sessions', 'export', 's1', '--output', 'new/'], { cwd })
  expect(toFolder).toMatchObject({ code: 1, stderr: expect.stringMatching(/^lango: Cannot write new\/ \(/) })
  expect(existsSync(join(cwd, 'new'))).toBe(false)
  await mkdir(join(cwd, 'far/inner'), { recursive: true })
  await symlink(join(cwd, 'far/inner'), join(cwd, 'link'))
  const exported = await lango(['sessions', 'export', 's1', '--output', 'link/../s1.jsonl'], { cwd })
  expect(exported).toMatchObject({ code: 0, stderr: expect.stringContaining('to link/../s1.jsonl.') })
  expect(existsSync(join(cwd, 'far/s1.jsonl'))).toBe(true)
  const imported = await lango(['sessions', 'import', 'link/../s1.jsonl', '--as', 's2'], { cwd })
  expect(imported).toMatchObject({ code: 0, stdout: expect.stringContaining('Imported s2') })
})

test('errors name a file as it was typed', async () => {
  const cwd = await temporaryFolder()
  await lango(['run', 'hi', '--session', 's1', '--model', 'demo'], { cwd })
  const refusals = [
    [
      ['sessions', 'import', 'lango.db'],
      /^lango: lango\.db is a Lango store\. Use it with --store sqlite:lango\.db\.$/,
    ],
    [['lint', 'lango.db'], /^lango: lango\.db is a Lango store\./],
    [
      ['sessions', 'export', 's1', '--output', 'none/s1.jsonl'],
      /^lango: Cannot write none\/s1\.jsonl \(.*'none\/s1\.jsonl/,
    ],
    [
      ['run', 'hi', '--model', 'demo', '--schema', 'none.json'],
      /^lango: Cannot read the schema none\.json: .*'none\.json'/,
    ],
  ] as const
  for (const [args, message] of refusals) {
    const { code, stderr } = await lango(args, { cwd })
    expect(stderr.trim()).toMatch(message)
    expect(stderr).not.toContain(cwd)
    expect(code).toBe(1)
  }
})
