import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { link, mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Tool } from '../../src/tool.js'
import { builtInTools } from '../../src/tools/built-in-tools.js'
import type { BuiltInToolName } from '../../src/tools/tool-names.js'
import { inWorkspace } from '../../src/tools/workspace-path.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'
import { useTool } from './use-tool.js'

let top: string
let workspace: string
let outside: string

beforeEach(async () => {
  top = await temporaryFolder()
  workspace = join(top, 'workspace')
  outside = join(top, 'outside')
  await mkdir(join(workspace, 'src/deep'), { recursive: true })
  await mkdir(outside)
  await writeFile(join(workspace, 'a.txt'), 'inside')
  await writeFile(join(workspace, 'src/b.txt'), 'inside b')
  await writeFile(join(outside, 'secret.txt'), 'SECRET')
})

const tool = (name: BuiltInToolName) => builtInTools([name], { workspace })[0] as Tool
const use = (name: BuiltInToolName, args: Record<string, unknown>) => useTool(tool(name), args)

/** Every tool that takes a path, with a call that would betray or damage what is at it. */
const ATTACKS: [BuiltInToolName, (path: string) => Record<string, unknown>][] = [
  ['read_file', path => ({ path })],
  ['write_file', path => ({ path, content: 'HACKED' })],
  ['edit_file', path => ({ path, old_text: 'SECRET', new_text: 'HACKED' })],
]
const FOLDER_ATTACKS: [BuiltInToolName, (path: string) => Record<string, unknown>][] = [
  ['list_files', path => ({ path })],
  ['search_files', path => ({ path, query: 'SECRET' })],
]

async function expectUntouched(): Promise<void> {
  expect(await readdir(outside)).toEqual(['secret.txt'])
  expect(await readFile(join(outside, 'secret.txt'), 'utf8')).toBe('SECRET')
}

describe.each(ATTACKS)('%s', (name, args) => {
  test.each([
    ['..', '../outside/secret.txt'],
    ['.. within', 'src/../../outside/secret.txt'],
    ['.. to a sibling with the same beginning', '../workspace-2/x'],
    ['an absolute path', '/etc/passwd'],
    ['a NUL', 'a.txt\0../../outside/secret.txt'],
  ])(`${name} refuses %s`, async (_, path) => {
    const result = await use(name, args(path))
    expect(result).toEqual({ error: expect.stringMatching(/outside the workspace|NUL/) })
    await expectUntouched()
  })

  test(`${name} refuses an absolute path to the outside`, async () => {
    expect(await use(name, args(join(outside, 'secret.txt')))).toEqual({
      error: expect.stringContaining('outside the workspace'),
    })
    await expectUntouched()
  })

  test.each([
    ['a link to a file', 'file-link'],
    ['a link to a folder', 'folder-link/secret.txt'],
    ['a link to a link', 'chain'],
    ['a folder behind a link behind ..', 'src/../folder-link/secret.txt'],
    ['a new file behind a link', 'folder-link/new/file.txt'],
    ['a link to what does not exist yet', 'dangling'],
  ])(`${name} refuses %s`, async (_, path) => {
    await symlink(join(outside, 'secret.txt'), join(workspace, 'file-link'))
    await symlink('../outside', join(workspace, 'folder-link'))
    await symlink('file-link', join(workspace, 'chain'))
    await symlink(join(outside, 'new.txt'), join(workspace, 'dangling'))
    expect(await use(name, args(path))).toEqual({
      error: expect.stringMatching(/outside the workspace|link to nowhere/),
    })
    await expectUntouched()
  })

  test(`${name} refuses a pipe instead of waiting for it`, async () => {
    execFileSync('mkfifo', [join(workspace, 'pipe')])
    expect(await use(name, args('pipe'))).toEqual({ error: expect.stringContaining('not a plain file') })
  })
})

describe.each(FOLDER_ATTACKS)('%s', (name, args) => {
  test.each([['..'], ['../outside'], ['/etc'], ['link']])(`${name} refuses the folder %s`, async path => {
    await symlink(outside, join(workspace, 'link'))
    expect(await use(name, args(path))).toEqual({ error: expect.stringContaining('outside the workspace') })
  })

  test(`${name} does not follow links on its way down`, async () => {
    await symlink(outside, join(workspace, 'src/link'))
    expect(JSON.stringify(await use(name, args('.')))).not.toContain('secret.txt')
  })
})

test('links within the workspace are followed', async () => {
  await symlink('src', join(workspace, 'inner'))
  await symlink('inner/b.txt', join(workspace, 'again'))
  expect(await use('read_file', { path: 'again' })).toMatchObject({ path: 'src/b.txt', text: 'inside b' })
  await use('write_file', { path: 'inner/c.txt', content: 'new' })
  expect(await readFile(join(workspace, 'src/c.txt'), 'utf8')).toBe('new')
})

test('a workspace may itself be named by a link, and files by their absolute path in it', async () => {
  await symlink(workspace, join(top, 'named'))
  const [read] = builtInTools(['read_file'], { workspace: join(top, 'named') }) as [Tool]
  expect(await useTool(read, { path: join(top, 'named/a.txt') })).toMatchObject({ text: 'inside' })
  expect(await useTool(read, { path: join(workspace, 'a.txt') })).toMatchObject({ text: 'inside' })
})

test('writing to a hard link leaves the other name alone', async () => {
  await link(join(outside, 'secret.txt'), join(workspace, 'twin'))
  await use('write_file', { path: 'twin', content: 'new' })
  expect(await readFile(join(workspace, 'twin'), 'utf8')).toBe('new')
  await expectUntouched()
})

/** A process that does nothing but turn a folder (or file) of the workspace into a link and back. */
async function swapper(path: string, target: string): Promise<ChildProcess> {
  const script = `
    const fs = require('node:fs')
    const [path, target] = process.argv.slice(1)
    fs.symlinkSync(target, path + '.link')
    console.log('ready')
    const there = name => fs.lstatSync(name, { throwIfNoEntry: false }) !== undefined
    const move = (from, to) => {
      // A tool may have made a folder where there was none for a moment: it gives way.
      try {
        if (there(from) && there(to)) fs.rmSync(path, { recursive: true, force: true })
        if (there(from)) fs.renameSync(from, to)
      } catch {}
    }
    for (;;) {
      move(path, path + '.real'); move(path + '.link', path)
      move(path, path + '.link'); move(path + '.real', path)
    }`
  const child = spawn(process.execPath, ['-e', script, path, target], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await closed
  })
  await once(child.stdout, 'data')
  return child
}

/** At least so many rounds, and as many as the attacker needs to get the processor. */
const MOST_ROUNDS = 5_000

for (const rounds of [40, 250]) {
  test(
    `a folder swapped for a link during ${rounds} calls never leads outside, to read or to write`,
    longUnless(rounds === 40),
    async () => {
      await writeFile(join(workspace, 'src/secret.txt'), 'inside')
      const attacker = await swapper(join(workspace, 'src'), outside)
      const outcomes = { fine: 0, refused: 0 }
      const hasMetBoth = () => outcomes.fine > 0 && outcomes.refused > 0
      for (let round = 0; round < rounds || (!hasMetBoth() && round < MOST_ROUNDS); round++) {
        const read = await use('read_file', { path: 'src/secret.txt' })
        expect(read.text ?? 'inside').toBe('inside')
        await use('write_file', { path: 'src/new.txt', content: 'HACKED' })
        await use('edit_file', { path: 'src/secret.txt', old_text: 'SECRET', new_text: 'HACKED' })
        if (round % 10 === 0) {
          const found = await use('search_files', { query: 'SECRET', path: 'src' })
          expect(found.matches ?? []).toEqual([])
        }
        outcomes[read.error === undefined ? 'fine' : 'refused']++
      }
      await expectUntouched()
      // The attack was really on: the calls met both states.
      expect(attacker.exitCode).toBeNull()
      expect(outcomes.fine).toBeGreaterThan(0)
      expect(outcomes.refused).toBeGreaterThan(0)
    },
  )

  test(
    `a file swapped for a link during ${rounds} calls never leads outside`,
    longUnless(rounds === 40),
    async () => {
      const attacker = await swapper(join(workspace, 'a.txt'), join(outside, 'secret.txt'))
      for (let round = 0; round < rounds; round++) {
        const read = await use('read_file', { path: 'a.txt' })
        expect(read.text).not.toBe('SECRET')
        await use('edit_file', { path: 'a.txt', old_text: 'SECRET', new_text: 'HACKED' })
      }
      await expectUntouched()
      expect(attacker.exitCode).toBeNull()
    },
  )
}

test('a folder that is replaced by a link between finding and opening is noticed', async () => {
  const attack = (hasDescriptorPaths: boolean) =>
    inWorkspace(
      workspace,
      'src/secret.txt',
      async ({ parent, name }) => {
        await rename(join(workspace, 'src'), join(workspace, 'moved'))
        await symlink(outside, join(workspace, 'src'))
        const handle = await parent.file(name)
        const text = await handle.readFile('utf8')
        await handle.close()
        return text
      },
      { hasDescriptorPaths },
    )
  await writeFile(join(workspace, 'src/secret.txt'), 'inside')
  // Beneath an open folder the name still means the same file.
  expect(await attack(true)).toBe('inside')
  execFileSync('rm', [join(workspace, 'src')])
  await rename(join(workspace, 'moved'), join(workspace, 'src'))
  // Where only paths exist, the swap is seen and refused.
  await expect(attack(false)).rejects.toThrow('was replaced while it was used')
})

describe('without paths through descriptors', () => {
  const options = { hasDescriptorPaths: false }

  test('without paths through descriptors, files are read and folders made', async () => {
    const read = inWorkspace(
      workspace,
      'src/b.txt',
      async ({ parent, name }) => {
        const handle = await parent.file(name)
        const text = await handle.readFile('utf8')
        await handle.close()
        return text
      },
      options,
    )
    expect(await read).toBe('inside b')
    await inWorkspace(workspace, 'x/y/z', async ({ path }) => expect(path).toBe('x/y/z'), {
      ...options,
      create: true,
    })
    expect((await stat(join(workspace, 'x/y'))).isDirectory()).toBe(true)
  })

  test('without paths through descriptors, links are refused', async () => {
    await symlink(outside, join(workspace, 'link'))
    await expect(inWorkspace(workspace, 'link/secret.txt', async () => 0, options)).rejects.toThrow('outside')
    await expect(
      inWorkspace(workspace, 'a.txt', ({ parent }) => parent.folder('link'), options),
    ).rejects.toThrow(/not a folder|link/)
  })
})

test('an unknown workspace is an error that names it', async () => {
  const [read] = builtInTools(['read_file'], { workspace: join(top, 'nowhere') }) as [Tool]
  expect(await useTool(read, { path: 'a' })).toEqual({
    error: expect.stringContaining('nowhere": '),
  })
})

test('calls of file tools leave no open descriptors', async () => {
  const open = async () => (await readdir('/proc/self/fd').catch(() => [])).length
  const calls = async () => {
    for (const path of ['a.txt', 'src/b.txt', '../x', 'src/none', 'src/deep'])
      await use('read_file', { path })
    await use('search_files', { query: 'inside', max_matches: 1 })
    await use('list_files', { path: '.', max_entries: 1 })
    await use('write_file', { path: 'n/e/w', content: 'x' })
  }
  await calls()
  const before = await open()
  for (let round = 0; round < 20; round++) await calls()
  expect(await open()).toBeLessThanOrEqual(before + 2)
})
