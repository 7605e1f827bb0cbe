import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { planInstallation } from '../../src/cli/add.js'
import { isInRange } from '../../src/cli/installed-packages.js'
import { OPTIONAL_NAMES } from '../../src/packages.js'
import { installWithoutPeers } from '../support/lango-without-peers.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, langoProcess } from './lango.js'

/** A project with Lango in it, and these files. */
async function project(files: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await temporaryFolder()
  await mkdir(join(folder, 'node_modules/lango'), { recursive: true })
  await writeFile(join(folder, 'node_modules/lango/package.json'), '{ "version": "0.1.0" }')
  for (const [name, text] of Object.entries({ 'package.json': '{}', ...files }))
    await writeFile(join(folder, name), text)
  return folder
}

function commandIn(cwd: string, options: { lango?: string; env?: Record<string, string> } = {}): string {
  const { manager, args } = planInstallation(['openai', 'postgres'], { cwd, env: {}, ...options })
  return [manager, ...args].join(' ')
}

test.each([
  ['package-lock.json', 'npm install openai@6 pg@8'],
  ['pnpm-lock.yaml', 'pnpm add openai@6 pg@8'],
  ['yarn.lock', 'yarn add openai@6 pg@8'],
  ['bun.lock', 'bun add openai@6 pg@8'],
  ['bun.lockb', 'bun add openai@6 pg@8'],
  ['README.md', 'npm install openai@6 pg@8'],
])(
  'for lango add, the lock file %s chooses the package manager, from a folder below too',
  async (file, command) => {
    const folder = await project({ [file]: '' })
    await mkdir(join(folder, 'src'))
    expect(commandIn(folder)).toBe(command)
    expect(planInstallation(['openai'], { cwd: join(folder, 'src'), env: {} }).folder).toBe(folder)
  },
)

test('without a lock file, package.json chooses the package manager, then the program that started lango add', async () => {
  const named = await project({ 'package.json': '{ "packageManager": "pnpm@10.1.0+sha512.abc" }' })
  expect(commandIn(named, { env: { npm_config_user_agent: 'yarn/4.0.0 npm/? node/v20' } })).toMatch(
    /^pnpm add /,
  )
  const plain = await project()
  expect(commandIn(plain, { env: { npm_config_user_agent: 'yarn/4.0.0 npm/? node/v20' } })).toMatch(
    /^yarn add /,
  )
  expect(commandIn(plain, { env: { npm_config_user_agent: 'deno/2.0.0' } })).toMatch(/^npm install /)
  expect(commandIn(await project({ 'package.json': 'no JSON' }))).toMatch(/^npm install /)
})

test('lango add installs global packages for a global Lango, and Lango itself for one from a cache', async () => {
  const empty = await temporaryFolder()
  const prefix = await temporaryFolder()
  const installed = join(prefix, 'lib/node_modules/lango')
  await mkdir(installed, { recursive: true })
  expect(commandIn(empty, { lango: installed })).toBe('npm install --global openai@6 pg@8')
  await writeFile(join(prefix, 'lib/package.json'), '{}')
  expect(commandIn(empty, { lango: installed })).toBe('npm install lango@0.1.0 openai@6 pg@8')
  expect(commandIn(await project(), { lango: installed })).toBe('npm install openai@6 pg@8')
})

/** A project with Lango and these versions of other packages. */
async function projectWith(versions: Readonly<Record<string, string>>): Promise<string> {
  const folder = await project()
  for (const [name, version] of Object.entries(versions)) {
    await mkdir(join(folder, 'node_modules', name), { recursive: true })
    await writeFile(join(folder, 'node_modules', name, 'package.json'), JSON.stringify({ version }))
  }
  return folder
}

test.each([
  ['the newest major of one', { openai: '7.55.0' }, 'npm install pg@8'],
  ['both', { openai: '6.50.1', pg: '8.23.1' }, undefined],
])('lango add leaves installed packages as they are: %s', async (_title, versions, command) => {
  const { manager, args, kept, isComplete } = planInstallation(['openai', 'postgres'], {
    cwd: await projectWith(versions),
    env: {},
  })
  expect(isComplete ? undefined : [manager, ...args].join(' ')).toBe(command)
  expect(Object.fromEntries(kept.map(({ name, version }) => [name, version]))).toEqual(versions)
})

test('lango add accepts the packages of OpenTelemetry 3 in place of those of version 2', async () => {
  const cwd = await projectWith({
    '@opentelemetry/exporter-trace-otlp-http': '0.301.0',
    '@opentelemetry/resources': '3.1.1',
    '@opentelemetry/sdk-trace': '3.1.0',
  })
  expect(planInstallation(['telemetry'], { cwd, env: {} }).isComplete).toBe(true)
})

test.each(['5.20.0', '6.48.0', '8.0.0'])(
  'lango add does not replace openai %s, and says how to',
  async version => {
    const cwd = await projectWith({ openai: version })
    const { code, stdout, stderr } = await lango(['add', 'openai', 'pg'], { cwd })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      `lango: openai ${version} is installed, and Lango works with ^6.49.0 || ^7.0.0. Nothing was changed; to replace it, run: npm install openai@6\n`,
    )
  },
)

test.each([
  ['6.49.0', '^6.49.0 || ^7.0.0', true],
  ['7.0.0', '^6.49.0 || ^7.0.0', true],
  ['8.0.0', '^6.49.0 || ^7.0.0', false],
  ['0.74.9', '^0.74.2', true],
  ['0.75.0', '^0.74.2', false],
  ['0.74.1', '^0.74.2', false],
  ['0.301.0', '>=0.205.0 <0.400.0', true],
  ['0.400.0', '>=0.205.0 <0.400.0', false],
  ['2.11.0-development.0', '^2.1.0', true],
  ['1.2.3', '1.2.3', true],
])('version %s in range %s: %s', (version, range, expected) => {
  expect(isInRange(version, range)).toBe(expected)
})

test('lango add takes names, providers and packages, and refuses others with a suggestion', async () => {
  const cwd = await project()
  const printed = async (...words: string[]) => {
    const { stdout, stderr } = await lango(['add', ...words, '--print'], { cwd })
    return stdout + stderr
  }
  expect(await printed('groq', 'OpenAI', 'pg', 'mcp')).toBe(
    'npm install openai@6 pg@8 @modelcontextprotocol/sdk@1\n',
  )
  expect(await printed('postgresql')).toBe(
    'lango: There is nothing to add under the name "postgresql". Did you mean "postgres"?\n',
  )
  expect(await printed('vertex')).toContain('Did you mean "vertex-claude"?')
  expect(await printed('left-pad')).toContain(`Known: ${OPTIONAL_NAMES.join(', ')}`)
  const json = await lango(['add', 'telemetry', '--print', '--json'], { cwd })
  expect(JSON.parse(json.stdout)).toEqual({
    command:
      'npm install @opentelemetry/exporter-trace-otlp-http@0.205 @opentelemetry/sdk-trace-base@2 @opentelemetry/resources@2',
    folder: cwd,
  })
})

test('lango add without a name lists what can be added, with the installed versions', async () => {
  const cwd = await temporaryFolder()
  const file = await installWithoutPeers(cwd, ['openai'])
  const { stdout } = await langoProcess(['add', '--json'], { cwd, file })
  const rows = JSON.parse(stdout) as { name: string; versions: string[] | null }[]
  expect(rows.map(({ name }) => name)).toEqual(OPTIONAL_NAMES)
  expect(rows.find(({ name }) => name === 'openai')?.versions).toEqual([expect.stringMatching(/^6\./)])
  expect(rows.find(({ name }) => name === 'anthropic')?.versions).toBeNull()

  const again = await langoProcess(['add', 'openai', '--json'], { cwd, file })
  expect(JSON.parse(again.stdout)).toMatchObject({ installed: ['openai'], changed: false })

  const doctor = await langoProcess(['doctor', '--offline', '--json'], {
    cwd,
    file,
    env: { ANTHROPIC_API_KEY: 'sk-1' },
  })
  const { checks } = JSON.parse(doctor.stdout) as {
    checks: { name: string; status: string; message: string }[]
  }
  const message = (name: string) => checks.find(check => check.name === name)?.message
  expect(message('packages')).toMatch(
    /^openai 6\.\S+, gemini 2\.\S+; lango add NAME installs anthropic, .*telemetry$/,
  )
  expect(checks.find(({ name }) => name === 'platform')).toMatchObject({
    status: 'fail',
    message: expect.stringMatching(/^A Claude model needs .*npm install @anthropic-ai\/sdk@1$/),
  })
})

test('lango add reports a package manager that fails or is not installed', async () => {
  const cwd = await temporaryFolder()
  const file = await installWithoutPeers(cwd)
  const offline = { npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' }
  const failed = await langoProcess(['add', 'postgres', '--json'], { cwd, file, env: offline })
  expect(failed).toMatchObject({ code: 1, stdout: '' })
  const words = failed.stderr.trim().split('\n').at(-1) ?? ''
  expect(JSON.parse(words)).toMatchObject({
    error: { details: { command: 'npm install pg@8', folder: cwd, exitCode: 1 } },
  })
  await writeFile(join(cwd, 'pnpm-lock.yaml'), '')
  const absent = await langoProcess(['add', 'postgres'], { cwd, file, env: { PATH: cwd } })
  expect(absent.code).toBe(1)
  expect(absent.stderr).toContain(
    'lango: pnpm cannot be started, and this folder uses it. Run yourself: pnpm add pg@8\n',
  )
})
