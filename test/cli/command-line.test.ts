import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { type CommandSpec, longName, optionsOf } from '../../src/cli/command.js'
import { helpText, parseCommandLine } from '../../src/cli/command-line.js'
import { LANGO } from '../../src/cli/commands.js'

import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, langoProcess } from './lango.js'

const GUARD = pathToFileURL(join(import.meta.dirname, 'refuse-packages.mjs')).href

function everyCommand(command: CommandSpec, path = command.name): [path: string, command: CommandSpec][] {
  const below = (command.commands ?? []).flatMap(child => everyCommand(child, `${path} ${child.name}`))
  return [[path, command], ...below]
}

test.each(everyCommand(LANGO))('the help of %s has an example and fits 80 columns', (path, command) => {
  const text = helpText(command, path, 80)
  expect(text).toContain(`Usage: ${path}`)
  expect(text).toContain('Examples:')
  for (const { flags } of optionsOf(command)) expect(text).toContain(flags)
  for (const line of text.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80)
})

test.each(everyCommand(LANGO))('the examples in the help of %s are valid command lines', (_path, command) => {
  for (const [line] of command.examples) {
    const words = /lango( [^|<>]*)?/
      .exec(line.replace(/^source /, ''))?.[0]
      .split(/ (?=(?:[^"]*"[^"]*")*[^"]*$)/)
    const args = (words ?? [])
      .slice(1)
      .filter(word => word !== '')
      .map(word => word.replaceAll(/["()]/g, ''))
    expect(() => parseCommandLine(LANGO, args), line).not.toThrow()
  }
})

test('help and version are printed without loading a parser, a schema, ADK, an SDK or a driver', async () => {
  const cwd = await temporaryFolder()
  const env = {
    REFUSED_PACKAGES: '^(@|zod|hono|openai|pg|yaml|pino|commander|cli-table3|node:(crypto|sqlite|http))',
  }
  const [version, help, short, long] = await Promise.all([
    langoProcess(['--version'], { cwd, env, imports: [GUARD] }),
    langoProcess(['--help'], { cwd, env, imports: [GUARD] }),
    langoProcess(['help', 'sessions', 'list'], { cwd, env, imports: [GUARD] }),
    langoProcess(['sessions', 'list', '--help'], { cwd, env, imports: [GUARD] }),
  ])
  expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: '' })
  expect(help).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('lango run "Summarise this"'),
    stderr: '',
  })
  expect(short.stdout).toBe(long.stdout)
})

test('sessions are listed without loading the schema, ADK or an SDK, also with a JSON configuration', async () => {
  const cwd = await temporaryFolder()
  const { writeFile } = await import('node:fs/promises')
  await writeFile(join(cwd, 'lango.config.json'), '{ "store": "sqlite:./kept.db", "app": "shop" }')
  const env = {
    REFUSED_PACKAGES: '^(@google|@anthropic|@hono|@earendil|@clack|zod|hono|openai|pg|yaml|pino)',
  }
  const listed = await langoProcess(['sessions', 'list'], { cwd, env, imports: [GUARD] })
  expect(listed).toMatchObject({ code: 0, stdout: '', stderr: 'No sessions in the app "shop".\n' })
})

test.each([
  [['nonsense'], `Unknown command "nonsense". 'lango --help' lists the commands.`],
  [['sesions'], 'Unknown command "sesions". Did you mean sessions?'],
  [['sessions', 'lst'], 'Unknown command "sessions lst". Did you mean list?'],
  [['run', '--modl', 'x', 'hi'], "Unknown option --modl of 'lango run'. Did you mean --model?"],
  [['-x'], "Unknown option -x of 'lango'. See 'lango --help'."],
  [['run', '--session', '', 'hi'], "--session needs a value. See 'lango run --help'."],
  [['sessions', 'show'], "'lango sessions show' needs <id>: the session. See 'lango sessions show --help'."],
  [['sessions', 'list', '--limit'], "--limit needs a value. See 'lango sessions list --help'."],
  [['sessions', 'list', '--limit', '--json'], "--limit needs a value. See 'lango sessions list --help'."],
  [['sessions', 'list', '--json=3'], "--json takes no value. See 'lango sessions list --help'."],
  [['strict', '--user', 'x'], "Unknown option --user of 'lango strict'. See 'lango strict --help'."],
  [
    ['sessions', 'list', 'extra'],
    `'lango sessions list' takes no arguments, but got "extra". See 'lango sessions list --help'.`,
  ],
])('the command line %j is refused in one sentence', (args, message) => {
  expect(() => parseCommandLine(LANGO, args)).toThrow(message)
})

test.each([
  [[], 'lango chat', [], {}],
  [['--session', 's1'], 'lango chat', [], { session: 's1' }],
  [['sessions'], 'lango sessions list', [], {}],
  [
    ['sessions', '-n', '3', '--store', 'memory:'],
    'lango sessions list',
    [],
    { limit: '3', store: 'memory:' },
  ],
  [['--store', 'memory:', 'sessions', 'show', 's1'], 'lango sessions show', ['s1'], { store: 'memory:' }],
  [['run', 'sessions', 'list'], 'lango run', ['sessions', 'list'], {}],
  [
    ['run', '-qf', 'a.txt', '--file=b.txt', 'hi'],
    'lango run',
    ['hi'],
    { quiet: true, file: ['a.txt', 'b.txt'] },
  ],
  [['run', '--', '--json'], 'lango run', ['--json'], {}],
  [['run', '--no-color', 'hi'], 'lango run', ['hi'], { color: false }],
  [['sessions', 'import', '-'], 'lango sessions import', ['-'], {}],
])('the command line %j calls %s', (args, path, words, flags) => {
  expect(parseCommandLine(LANGO, args)).toMatchObject({ path, words, flags })
})

test('an error of a command is one line, data with --json, and has a stack trace only with --debug', async () => {
  const cwd = await temporaryFolder()
  const args = ['sessions', 'list', '--limit', '0']
  const message = '--limit is "0", but must be a whole number of at least 1.'
  const [plain, json, debug, unknown] = await Promise.all([
    lango(args, { cwd }),
    lango([...args, '--json'], { cwd }),
    lango([...args, '--debug'], { cwd }),
    lango(['nonsense'], { cwd }),
  ])
  expect(plain).toEqual({ code: 1, stdout: '', stderr: `lango: ${message}\n` })
  expect(JSON.parse(json.stderr)).toMatchObject({
    error: { code: 'invalid-argument', message, retryable: false },
  })
  expect(debug.stderr).toMatch(/\n +at wholeNumber /)
  expect(unknown.code).toBe(1)
})

test.each(everyCommand(LANGO).slice(1))('%s is in the manual with every option', (path, command) => {
  const manual = readFileSync(join(import.meta.dirname, '../../docs/cli.md'), 'utf8')
  const [, section] = manual.split(new RegExp(`^#{2,3} ${path}$`, 'm'))
  const own = section?.split(/^#{2,3} /m)[0] ?? ''
  expect(own.length).toBeGreaterThan(50)
  for (const option of optionsOf(command)) expect(own).toContain(longName(option))
})
