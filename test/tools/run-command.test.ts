import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Tool } from '../../src/tool.js'
import { builtInTools } from '../../src/tools/built-in-tools.js'
import { safeEnvironment } from '../../src/tools/mcp-process.js'
import { BoundedOutput, type RunCommandOptions, runCommandTool } from '../../src/tools/run-command.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { type UseOptions, useTool } from './use-tool.js'

let top: string
let workspace: string

beforeEach(async () => {
  top = await temporaryFolder()
  workspace = join(top, 'workspace')
  await mkdir(workspace)
})

afterEach(() => vi.unstubAllEnvs())

const tool = (options: Partial<RunCommandOptions> = {}): Tool =>
  runCommandTool({ workspace, sandbox: 'off', ...options })
const run = (command: string, options: Partial<RunCommandOptions> = {}, use: UseOptions = {}) =>
  useTool(tool(options), { command }, use)

/** The processes whose ids a command wrote down. Files tell, because output may never arrive. */
async function pids(...names: string[]): Promise<number[]> {
  return Promise.all(names.map(async name => Number(await readFile(join(workspace, name), 'utf8'))))
}

/** A process that was killed may still wait to be collected by its parent: that one runs no more. */
async function isRunning(pid: number): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    return !/\) [ZX] /.test(stat)
  } catch {
    return false
  }
}

async function untilWritten(...names: string[]): Promise<void> {
  for (let round = 0; round < 2_000; round++) {
    const texts = await Promise.all(
      names.map(name => readFile(join(workspace, name), 'utf8').catch(() => '')),
    )
    if (texts.every(text => text.endsWith('\n'))) return
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  expect.unreachable('the command never started')
}

test('a command runs in the workspace and answers with its exit code and output', async () => {
  await writeFile(join(workspace, 'a.txt'), 'x')
  expect(await run('ls; echo oops >&2; exit 3')).toEqual({
    exitCode: 3,
    output: 'a.txt\noops\n',
    sandbox: 'none',
  })
})

test('a command gets no input', async () => {
  expect(await run('cat; echo done')).toMatchObject({ exitCode: 0, output: 'done\n' })
})

test('a command that a signal ends says so', async () => {
  expect(await run('kill -SEGV $$')).toMatchObject({ exitCode: null, signal: 'SIGSEGV' })
})

test('a command that was never started leaves a plain error', async () => {
  expect(await run('ls', { workspace: join(top, 'nowhere') })).toEqual({
    error: expect.stringContaining('ENOENT'),
  })
})

const daemons =
  'setsid sh -c \'echo $$ > left-group; exec sleep 600\' & (trap "" TERM; sh -c \'echo $$ > deaf; trap "" TERM; while :; do sleep 1; done\') &'

test('after a timeout everything that a command started has ended, grandchildren that ignore signals or left the group included', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
  onTestFinished(() => void vi.useRealTimers())
  const running = run(`${daemons} echo started; echo > ready; sleep 600`, { timeoutMs: 60_000 })
  await untilWritten('left-group', 'deaf', 'ready')
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await running).toEqual({
    error: 'The command did not end within 60000 ms. The command was killed, with everything it had started.',
    exitCode: null,
    output: 'started\n',
    sandbox: 'none',
  })
  const left = await pids('left-group', 'deaf')
  expect(left.every(pid => pid > 1)).toBe(true)
  expect(await Promise.all(left.map(isRunning))).toEqual([false, false])
})

test('after a good end everything that a command started has ended, so that nothing stays in the background', async () => {
  const result = await run(
    `${daemons} while [ ! -s left-group ] || [ ! -s deaf ]; do sleep 0.05; done; echo done`,
  )
  expect(result).toMatchObject({ exitCode: 0, output: 'done\n' })
  expect(await Promise.all((await pids('left-group', 'deaf')).map(isRunning))).toEqual([false, false])
})

test('when the run is stopped everything that a command started has ended', async () => {
  const stop = new AbortController()
  const running = run('sh -c "echo \\$\\$ > child; sleep 600"; echo never', {}, { signal: stop.signal })
  await untilWritten('child')
  stop.abort()
  expect(await running).toHaveProperty('error')
  const [child = 0] = await pids('child')
  for (let round = 0; round < 2_000 && (await isRunning(child)); round++) {
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  expect(await isRunning(child)).toBe(false)
})

test('the model may ask for less time for a command, not for more', async () => {
  const less = await useTool(tool(), { command: 'sleep 600', timeout_seconds: 0.05 })
  expect(less.error).toContain('within 50 ms')
  const more = await useTool(tool({ timeoutMs: 60 }), { command: 'sleep 600', timeout_seconds: 1000 })
  expect(more.error).toContain('within 60 ms')
})

test('output without end ends the command, in little memory', async () => {
  const before = process.memoryUsage().rss
  const result = await run('yes "a bomb of output" & yes 한글 >&2 & yes more')
  expect(result).toMatchObject({ error: expect.stringContaining('wrote more than 64000000 bytes') })
  expect(Buffer.byteLength(String(result.output))).toBeLessThan(33_000)
  expect(result.output).toContain('shortened by Lango')
  expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000)
})

test('long output keeps its beginning and its end', async () => {
  const { output } = await run('echo begin; seq 1 50000; echo end')
  expect(output).toMatch(
    /^begin\n1\n2\n.*… \[shortened by Lango: \d+ of 288904 bytes left out\] ….*50000\nend\n$/s,
  )
})

test.each([1, 7, 64, 1000])('output in chunks of %i bytes is cut between characters', size => {
  const all = Buffer.from('é한😀'.repeat(200))
  const output = new BoundedOutput(100)
  for (let at = 0; at < all.length; at += size) output.add(all.subarray(at, at + size))
  expect(output.text()).toMatch(
    /^é한😀[^\ufffd]*… \[shortened by Lango: 1700 of 1800 bytes left out\] …[^\ufffd]*é한😀$/u,
  )
  expect(output.totalBytes).toBe(1800)
})

test('output within the limit is whole', () => {
  const output = new BoundedOutput(10)
  for (const part of ['abc', 'defg', 'hij']) output.add(Buffer.from(part))
  expect(output.text()).toBe('abcdefghij')
})

test('the environment of a command has no keys of ours, and what the owner adds', async () => {
  vi.stubEnv('OPENAI_API_KEY', 'sk-secret-1')
  vi.stubEnv('DATABASE_URL', 'postgres://u:sk-secret-2@h/d')
  vi.stubEnv('MY_TOKEN', 'sk-secret-3')
  const { output } = await run('env', { env: { GREETING: 'hello' } })
  expect(output).not.toContain('sk-secret')
  expect(output).toContain('GREETING=hello')
  expect(output).toContain('PATH=')
})

test.each([
  ['PATH', true],
  ['LC_ALL', true],
  ['HOME', true],
  ['XDG_CACHE_HOME', true],
  ['XDG_AUTH_TOKEN', false],
  ['XDG_SESSION_ID', false],
  ['ANTHROPIC_API_KEY', false],
  ['SSH_AUTH_SOCK', false],
  ['RANDOM_NAME', false],
])('the environment variable %s is passed to a command: %s', (name, isKept) => {
  expect(name in safeEnvironment({}, { [name]: 'value' })).toBe(isKept)
})

describe('the sandbox', () => {
  /** A stand-in that notes how it was called and runs the command, or fails as on machines that forbid it. */
  async function standIn(works: boolean): Promise<Record<string, string>> {
    const bin = join(top, works ? 'bin' : 'broken')
    await mkdir(bin)
    const script = works
      ? `#!/bin/sh\nprintf '%s\\n' "$*" >> ${top}/calls\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n`
      : '#!/bin/sh\necho "bwrap: No permissions to create a new namespace" >&2\nexit 1\n'
    await writeFile(join(bin, 'bwrap'), script)
    await chmod(join(bin, 'bwrap'), 0o755)
    return { PATH: `${bin}:/usr/bin:/bin` }
  }

  test('a sandbox is used where it works, without network and with nothing writable but the workspace', async () => {
    const env = await standIn(true)
    expect(await run('pwd', { sandbox: 'auto', env })).toEqual({
      exitCode: 0,
      output: `${workspace}\n`,
      sandbox: 'bubblewrap',
    })
    await run('true', { sandbox: 'required', env })
    const calls = (await readFile(join(top, 'calls'), 'utf8')).trim().split('\n')
    // Tried once, then used twice.
    expect(calls).toHaveLength(3)
    for (const flags of [
      '--ro-bind / /',
      '--unshare-all',
      '--die-with-parent',
      `--bind ${workspace} ${workspace}`,
      '--tmpfs /tmp',
    ]) {
      expect(calls[1]).toContain(flags)
    }
    expect(calls[1]?.match(/--bind /g)).toHaveLength(1)
  })

  test('a missing sandbox is the reason of the approval; a command in a sandbox is approved without one', async () => {
    const reasonOf = (sandbox: 'auto' | 'required' | 'off', env?: Record<string, string>) => {
      const [tool] = builtInTools(['run_command'], { workspace, sandbox, env })
      if (typeof tool?.needsApproval !== 'function') return tool?.needsApproval
      return tool.needsApproval({ command: 'true' })
    }
    const [works, broken] = [await standIn(true), await standIn(false)]
    expect(await reasonOf('auto', works)).toBe(true)
    expect(await reasonOf('auto', broken)).toContain('runs without a sandbox on this machine')
    expect(await reasonOf('off', works)).toContain('runs without a sandbox on this machine')
    // Without a sandbox such a command does not run at all.
    expect(await reasonOf('required', broken)).toBe(true)
  })

  test.each([
    [true, expect.any(Function)],
    [false, false],
  ])('an approval of commands set to %s has a reason where a person is asked', (asks, expected) => {
    const options = { workspace, needsApproval: { run_command: asks, read_file: asks } }
    const [command, file] = builtInTools(['run_command', 'read_file'], options)
    expect(command?.needsApproval).toEqual(expected)
    expect(file?.needsApproval).toBe(asks)
  })

  test('a sandbox that does not work is not used, and where it is required nothing runs', async () => {
    const env = await standIn(false)
    expect(await run('echo plain', { sandbox: 'auto', env })).toMatchObject({
      output: 'plain\n',
      sandbox: 'none',
    })
    expect(await run('touch ran', { sandbox: 'required', env })).toEqual({
      error: expect.stringContaining('bubblewrap'),
    })
    expect(await readdir(workspace)).toEqual([])
  })
})
