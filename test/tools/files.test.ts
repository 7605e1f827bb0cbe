import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Tool } from '../../src/tool.js'
import { builtInTools } from '../../src/tools/built-in-tools.js'
import { BUILT_IN_TOOL_NAMES, type BuiltInToolName } from '../../src/tools/tool-names.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { useTool } from './use-tool.js'

let workspace: string

beforeEach(async () => {
  workspace = await temporaryFolder()
})

const use = (name: BuiltInToolName, args: Record<string, unknown> = {}) =>
  useTool(builtInTools([name], { workspace })[0] as Tool, args)
const put = (path: string, content: string | Uint8Array) => writeFile(join(workspace, path), content)
const get = (path: string) => readFile(join(workspace, path), 'utf8')

test('builtInTools returns each named tool once', () => {
  const names = builtInTools(['read_file', 'current_time', 'read_file'], { workspace }).map(tool => tool.name)
  expect(names).toEqual(['read_file', 'current_time'])
  expect(builtInTools([], { workspace })).toEqual([])
})

test.each([['rm_rf'], ['toString'], ['']])('builtInTools refuses %j and lists the tools that exist', name => {
  expect(() => builtInTools([name], { workspace })).toThrow(
    expect.objectContaining({
      code: 'invalid-config',
      message: expect.stringContaining('read_file, list_files, search_files, write_file, edit_file'),
    }),
  )
})

test('built-in tools ask before writing and running, unless configured otherwise', async () => {
  const asking = builtInTools(BUILT_IN_TOOL_NAMES, { workspace }).filter(tool => tool.needsApproval)
  expect(asking.map(tool => tool.name)).toEqual(['write_file', 'edit_file', 'run_command'])
  const [write, fetch] = builtInTools(['write_file', 'fetch_url'], {
    workspace,
    needsApproval: { write_file: false, fetch_url: true },
  }) as [Tool, Tool]
  expect([write.needsApproval, fetch.needsApproval]).toEqual([false, true])
})

test.each<[BuiltInToolName, Record<string, unknown>]>([
  ['write_file', { path: 'new.txt', content: 'x' }],
  ['run_command', { command: 'touch new.txt' }],
])('%s does nothing when it is refused or nobody answers', async (name, args) => {
  const [tool] = builtInTools([name], { workspace }) as [Tool]
  expect(await useTool(tool, args, { approve: () => 'no' })).toEqual({
    error: expect.stringContaining('refused'),
  })
  const silence = { approve: () => new Promise<boolean>(() => {}), approvalTimeoutMs: 1 }
  expect(await useTool(tool, args, silence)).toEqual({ error: expect.stringContaining('nobody answered') })
  expect(await useTool(tool, args, { approve: undefined })).toHaveProperty('error')
  expect(await readdir(workspace)).toEqual([])
})

test('read_file reads a small file whole', async () => {
  await put('a.txt', 'one\ntwo\nthree')
  expect(await use('read_file', { path: 'a.txt' })).toEqual({
    path: 'a.txt',
    bytes: 13,
    text: 'one\ntwo\nthree',
    firstLine: 1,
    lastLine: 3,
    totalLines: 3,
  })
})

test('read_file pages by lines until the end', async () => {
  const lines = Array.from({ length: 25 }, (_, index) => `line ${index + 1} é한`)
  await put('a.txt', `${lines.join('\n')}\n`)
  const pages: string[] = []
  let next: unknown = 1
  for (let page = 0; page < 10 && next !== undefined; page++) {
    const result = await use('read_file', { path: 'a.txt', first_line: next, max_lines: 10 })
    pages.push(String(result.text))
    next = result.nextLine
  }
  expect(pages).toHaveLength(3)
  expect(pages.join('\n')).toBe(lines.join('\n'))
})

test('read_file keeps characters whole where the file is read in pieces', async () => {
  const text = `a${'한'.repeat(30_000)}`.match(/.{1,1000}/gu)?.join('\n') ?? ''
  await put('a.txt', text)
  const read = await use('read_file', { path: 'a.txt', max_lines: 5_000 })
  expect(text.startsWith(String(read.text))).toBe(true)
  expect(String(read.text).length).toBeGreaterThan(15_000)
  expect(read).not.toHaveProperty('output')
})

test('read_file shortens a line without end and stays within the limit of a page', async () => {
  await put('a.txt', 'x'.repeat(3_000_000))
  const { text } = await use('read_file', { path: 'a.txt' })
  expect(text).toMatch(/^x{4000}… \[shortened by Lango: 2996000 characters of this line left out\]$/)
  await put('b.txt', `${'y'.repeat(999)}\n`.repeat(100))
  expect(await use('read_file', { path: 'b.txt' })).toMatchObject({ lastLine: 48, nextLine: 49 })
})

test.each<[string, Uint8Array, string]>([
  ['an image', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), 'image (image/png)'],
  ['a JPEG', Buffer.from('ffd8ffe000104a464946', 'hex'), 'image (image/jpeg)'],
  ['a binary file', Buffer.from([1, 2, 0, 3]), 'binary file'],
  [
    'what is not UTF-8',
    Buffer.from(Array.from({ length: 300 }, (_, index) => 128 + (index % 100))),
    'binary',
  ],
])('read_file describes %s instead of reading it', async (_, content, note) => {
  await put('a', content)
  expect(await use('read_file', { path: 'a' })).toEqual({
    path: 'a',
    bytes: content.length,
    binary: true,
    note: expect.stringContaining(note),
  })
})

test.each([
  ['an empty file', '', { text: '', totalLines: 0 }],
  ['a page behind the end', 'x\ny', { text: '', totalLines: 2, note: 'The file has 2 lines.' }],
])('read_file finds no lines in %s', async (_, content, expected) => {
  await put('a', content)
  expect(await use('read_file', { path: 'a', first_line: 5 })).toMatchObject(expected)
})

test('read_file reports a missing file and a folder without paths of the machine', async () => {
  await mkdir(join(workspace, 'folder'))
  const missing = await use('read_file', { path: 'no/file' })
  expect(missing.error).toBe('"no/file": there is no such file or folder.')
  expect(await use('read_file', { path: 'folder' })).toEqual({ error: '"folder" is a folder, not a file.' })
})

describe('list_files', () => {
  beforeEach(async () => {
    await mkdir(join(workspace, 'src/deep/deeper'), { recursive: true })
    await mkdir(join(workspace, 'node_modules/thing'), { recursive: true })
    await mkdir(join(workspace, '.git'))
    await put('.git/HEAD', 'x')
    await put('src/a.ts', 'x')
    await put('src/deep/b.ts', 'x')
    await symlink('src', join(workspace, 'z-link'))
  })

  test('list_files lists as deep as asked, folders first named, links not followed, noise left out', async () => {
    expect(await use('list_files', { depth: 3 })).toEqual({
      entries: [
        '.git/',
        'node_modules/',
        'src/',
        'src/a.ts',
        'src/deep/',
        'src/deep/b.ts',
        'src/deep/deeper/',
        'z-link (link)',
      ],
    })
    expect(await use('list_files', { path: 'src', depth: 1 })).toEqual({ entries: ['src/a.ts', 'src/deep/'] })
  })

  test('list_files says when there is more', async () => {
    expect(await use('list_files', { max_entries: 2 })).toEqual({
      entries: ['.git/', 'node_modules/'],
      note: expect.stringContaining('More entries exist'),
    })
  })
})

describe('search_files', () => {
  beforeEach(async () => {
    await mkdir(join(workspace, 'node_modules'))
    await put('node_modules/a.js', 'needle')
    await put('a.ts', 'first\r\nthe needle (1+1)\r\nlast Needle')
    await put('b.md', 'needle')
    await put('c.bin', Buffer.from([0, ...Buffer.from('needle')]))
  })

  test.each<[string, Record<string, unknown>, string[]]>([
    ['text', { query: 'needle' }, ['a.ts:2:the needle (1+1)', 'b.md:1:needle']],
    ['text with signs', { query: '(1+1)' }, ['a.ts:2:the needle (1+1)']],
    [
      'any case',
      { query: 'NEEDLE', case_sensitive: false, name_ends_with: '.ts' },
      ['a.ts:2:the needle (1+1)', 'a.ts:3:last Needle'],
    ],
    ['a regular expression', { query: '^last\\s', regex: true }, ['a.ts:3:last Needle']],
    ['one with a needless backslash', { query: '\\@?needle$', regex: true }, ['b.md:1:needle']],
  ])('search_files finds %s', async (_, args, expected) => {
    const { matches } = (await use('search_files', args)) as {
      matches: { path: string; line: number; text: string }[]
    }
    expect(matches.map(({ path, line, text }) => `${path}:${line}:${text}`)).toEqual(expected)
  })

  test('search_files says what it skipped and where it stopped', async () => {
    expect(await use('search_files', { query: 'e', max_matches: 2 })).toEqual({
      matches: [expect.objectContaining({ line: 2 }), expect.objectContaining({ line: 3 })],
      filesSearched: 2,
      note: expect.stringContaining('only the first 2'),
    })
    expect(await use('search_files', { query: 'needle' })).toMatchObject({
      filesSearched: 2,
      filesSkipped: 1,
    })
  })

  test('search_files shows what stands around a match in a long line', async () => {
    await put('long.txt', `${'x'.repeat(5_000)}pin${'y'.repeat(5_000)}`)
    const { matches } = (await use('search_files', { query: 'pin' })) as { matches: { text: string }[] }
    expect(matches[0]?.text).toMatch(/^…x+piny+…$/)
    expect(matches[0]?.text.length).toBeLessThan(310)
  })

  test('search_files stops a regular expression that would never end', async () => {
    await put('evil.txt', `${'a'.repeat(60)}!`)
    expect(await use('search_files', { query: '^(a+)+$', regex: true })).toEqual({
      error: expect.stringContaining('takes too long'),
    })
  })

  test('search_files reports an invalid regular expression', async () => {
    expect(await use('search_files', { query: '(', regex: true })).toEqual({
      error: expect.stringContaining('not a regular expression'),
    })
  })
})

test('write_file makes a file and its folders, and replaces it', async () => {
  const path = 'new/deep/a.txt'
  expect(await use('write_file', { path, content: 'één' })).toEqual({ path, bytes: 5, created: true })
  expect(await use('write_file', { path, content: 'two' })).toEqual({ path, bytes: 3, created: false })
  expect(await get(path)).toBe('two')
  expect(await readdir(join(workspace, 'new/deep'))).toEqual(['a.txt'])
})

test('write_file keeps the permissions of what it replaces', async () => {
  await put('run.sh', 'x')
  await chmod(join(workspace, 'run.sh'), 0o755)
  await use('write_file', { path: 'run.sh', content: 'y' })
  expect((await stat(join(workspace, 'run.sh'))).mode & 0o777).toBe(0o755)
})

test('write_file does not replace a folder', async () => {
  await mkdir(join(workspace, 'folder'))
  expect(await use('write_file', { path: 'folder', content: 'x' })).toEqual({
    error: expect.stringContaining('not a plain file'),
  })
  expect(await use('write_file', { path: '.', content: 'x' })).toHaveProperty('error')
})

describe('edit_file', () => {
  const edit = (old_text: string, new_text: string, more = {}) =>
    use('edit_file', { path: 'a.txt', old_text, new_text, ...more })

  test('edit_file replaces the one passage, letter for letter', async () => {
    await put('a.txt', '\ufeffcost: $& $1\nrest\n')
    expect(await edit('$& $1', '$2')).toEqual({ path: 'a.txt', replacements: 1 })
    expect(await get('a.txt')).toBe('\ufeffcost: $2\nrest\n')
  })

  test('edit_file replaces all passages when asked to', async () => {
    await put('a.txt', 'a-a-a')
    expect(await edit('a', 'b', { replace_all: true })).toEqual({ path: 'a.txt', replacements: 3 })
    expect(await get('a.txt')).toBe('b-b-b')
  })

  test('edit_file takes plain line ends for those of the file', async () => {
    await put('a.txt', 'one\r\ntwo\r\nthree\r\n')
    await edit('one\ntwo', 'uno\ndue')
    expect(await get('a.txt')).toBe('uno\r\ndue\r\nthree\r\n')
  })

  test.each<[string, string, string, RegExp]>([
    ['missing', 'abc', 'xyz', /does not occur in "a\.txt"\. Read the file again/],
    ['missing for its white space', 'if (a) {\n\treturn\n}', 'if (a) {\n  return', /different white space/],
    ['not unique', 'x\nab\nx\n', 'x', /2 times \(lines 1, 3\)/],
  ])('edit_file refuses a passage that is %s, and changes nothing', async (_, content, passage, message) => {
    await put('a.txt', content)
    expect(await edit(passage, 'new')).toEqual({ error: expect.stringMatching(message) })
    expect(await get('a.txt')).toBe(content)
  })

  test('edit_file refuses a file that is not text', async () => {
    await put('a.txt', Buffer.from([0xff, 0xfe, 0x61]))
    expect(await edit('a', 'b')).toEqual({ error: expect.stringContaining('not a text file') })
  })
})

test('current_time returns the time in a time zone', async () => {
  const { utc, local, timeZone } = await use('current_time', { time_zone: 'Asia/Seoul' })
  expect(Math.abs(Date.now() - Date.parse(String(utc)))).toBeLessThan(60_000)
  expect(timeZone).toBe('Asia/Seoul')
  expect(local).toMatch(/\d{4} at \d\d:\d\d:\d\d/)
})

test('current_time refuses an unknown time zone', async () => {
  expect(await use('current_time', { time_zone: 'Moon/Base' })).toEqual({
    error: expect.stringContaining('not a time zone'),
  })
})
