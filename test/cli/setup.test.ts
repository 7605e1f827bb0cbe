import { execFile } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lango, langoProcess } from './lango.js'

const execute = promisify(execFile)

test.each([
  ['--ts', ['agent.ts', 'lango.config.ts', 'tools'], 'roll_dice'],
  ['--js', ['agent.mjs', 'lango.config.mjs', 'tools'], 'roll_dice'],
  ['--json', ['lango.config.json'], 'current_time'],
])(
  'lango init %s writes files that run as they are, and never overwrites them',
  async (format, files, tool) => {
    const cwd = await temporaryFolder()
    const written = await lango(['init', 'shop', format, '--yes', '--name', 'clerk'], { cwd })
    expect(written).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Wrote shop.lango\.config\./),
      stderr: '',
    })
    const shop = join(cwd, 'shop')
    expect((await readdir(shop)).sort()).toEqual(files)
    const answered = await lango(['run', '--json', `use ${tool}, please`], { cwd: shop })
    expect(answered.code).toBe(0)
    expect(answered.stdout).toMatch(new RegExp(`"type":"tool-result","author":"clerk".*"name":"${tool}"`))
    const before = await readFile(join(shop, files.find(name => name.startsWith('lango')) ?? ''), 'utf8')
    const again = await lango(['init', 'shop', format, '--yes'], { cwd })
    expect(again).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^lango: .*nothing was written/),
    })
    expect(await readFile(join(shop, files.find(name => name.startsWith('lango')) ?? ''), 'utf8')).toBe(
      before,
    )
  },
)

test('lango init writes its flags into the files, quotes included, and writes nothing for invalid ones', async () => {
  const cwd = await temporaryFolder()
  const args = ['init', '--yes', '--js']
  const [model, name, store, two, silent] = await Promise.all([
    lango([...args, '--model', 'gpt-5.2'], { cwd }),
    lango([...args, '--name', "it's bad"], { cwd }),
    lango([...args, '--store', 'mysql:x'], { cwd }),
    lango([...args, '--ts'], { cwd }),
    lango(['init'], { cwd }),
  ])
  expect(model.stderr).toContain('Did you mean "openai/gpt-5.2"?')
  expect(name.stderr).toContain('`agent.name` is "it\'s bad"')
  expect(store.stderr).toContain('must start with sqlite:, postgres:// or memory:')
  expect(two.stderr).toContain('Use only one of --ts, --js.')
  expect(silent.stderr).toContain('Pass --yes to use the defaults')
  expect([model, name, store, two, silent].map(({ code }) => code)).toEqual([1, 1, 1, 1, 1])
  expect(await readdir(cwd)).toEqual([])
  const good = await lango([...args, '--model', 'ollama/qwen3', '--store', "sqlite:./it's.db"], { cwd })
  expect(good.code).toBe(0)
  const shown = await langoProcess(['config', 'show', '--json'], { cwd })
  expect(JSON.parse(shown.stdout)).toMatchObject({
    model: 'ollama/qwen3',
    config: { store: "sqlite:./it's.db" },
  })
})

test('lango config shows each setting and where it comes from, and hides every key', async () => {
  const cwd = await temporaryFolder()
  const secret = 'sk-secret-of-the-test-1234567890'
  const config = {
    app: 'shop',
    providers: { openai: { apiKey: secret } },
    store: 'postgres://u:pass-word@127.0.0.1:1/x',
  }
  await writeFile(join(cwd, 'lango.config.json'), JSON.stringify(config))
  await writeFile(join(cwd, '.env'), 'LANGO_MAX_TURNS=7\n')
  const [plain, json, check, checkJson, schema] = await Promise.all([
    lango(['config', 'show'], { cwd, env: { COLUMNS: '100' } }),
    lango(['config', 'show', '--json'], { cwd }),
    lango(['config', 'check'], { cwd }),
    lango(['config', 'check', '--json'], { cwd }),
    lango(['config', 'schema'], { cwd }),
  ])
  for (const { stdout } of [plain, json, check, checkJson]) expect(stdout).not.toMatch(/secret-of|pass-word/)
  expect(plain.stdout).toMatch(/^app +shop +lango\.config\.json$/m)
  expect(plain.stdout).toMatch(/^limits\.maxTurns +7 +the environment variable LANGO_MAX_TURNS$/m)
  expect(plain.stdout).toMatch(/^agent\.model +openai\/gpt-5\.2 +default: providers\.openai has a key$/m)
  expect(JSON.parse(json.stdout)).toMatchObject({
    config: { app: 'shop', providers: { openai: { apiKey: '[hidden]' } } },
  })
  expect(check).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok {2}.*lango\.config\.json\n/) })
  expect(JSON.parse(checkJson.stdout)).toMatchObject({ ok: true, model: 'openai/gpt-5.2' })
  expect(JSON.parse(schema.stdout)).toMatchObject({
    type: 'object',
    properties: { store: { type: 'string' } },
  })
})

test('lango config check reports all problems, also those that only a runtime finds', async () => {
  const cwd = await temporaryFolder()
  await writeFile(
    join(cwd, 'lango.config.json'),
    JSON.stringify({ sotre: 'memory:', agent: { maxTurns: 0 } }),
  )
  await writeFile(join(cwd, 'model.config.json'), JSON.stringify({ agent: { model: 'opnai/gpt-5.2' } }))
  const [plain, json, model, none] = await Promise.all([
    lango(['config', 'check'], { cwd }),
    lango(['config', 'check', '--json'], { cwd }),
    lango(['config', 'check', '--config', 'model.config.json'], { cwd }),
    lango(['config', 'check', '--config', 'none.json'], { cwd }),
  ])
  expect(plain.code).toBe(1)
  expect(plain.stderr).toContain('lango.config.json is not valid. 2 problems:')
  expect(plain.stderr).toContain('Did you mean `store`?')
  expect(json.code).toBe(1)
  expect(JSON.parse(json.stdout)).toMatchObject({
    ok: false,
    problems: [{ path: 'agent.maxTurns' }, { path: 'sotre' }],
  })
  expect(model).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Cannot find the model "opnai/gpt-5.2".'),
  })
  expect(none.code).toBe(1)
})

test('lango models shows limits, prices and which keys are set, and never a key itself', async () => {
  const cwd = await temporaryFolder()
  const env = { ANTHROPIC_API_KEY: 'sk-ant-test-0123456789', AWS_PROFILE: 'work', COLUMNS: '80' }
  const [table, all, json, groq, unknown] = await Promise.all([
    lango(['models', '--provider', 'anthropic'], { cwd, env }),
    lango(['models'], { cwd, env }),
    lango(['models', '--json'], { cwd, env }),
    lango(['models', '--provider', 'groq'], { cwd, env }),
    lango(['models', '--provider', 'antropic'], { cwd, env }),
  ])
  expect(table.stdout).toMatch(/^anthropic\/claude-sonnet-4-6 +1M +64K +3 +15 +anthropic-4\.6 +yes$/m)
  expect(all.stdout).toMatch(/^demo\/demo .* free +free +openai-\S+ +not needed$/m)
  expect(table.stdout + json.stdout).not.toContain('0123456789')
  for (const line of table.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  const { models, default: chosen } = JSON.parse(json.stdout)
  expect(chosen).toBe('anthropic/claude-sonnet-4-6')
  expect(models).toContainEqual({
    reference: 'openai/gpt-5.2',
    provider: 'openai',
    id: 'gpt-5.2',
    contextWindow: 400_000,
    outputLimit: 128_000,
    price: { input: 1.75, output: 14, cachedInput: 0.175 },
    capabilities: { vision: true, tools: true, thinking: true },
    profile: 'openai-responses',
    keyPresent: false,
    keyVariable: 'OPENAI_API_KEY',
    known: true,
  })
  expect(all.stdout).toContain(`
  azure (AZURE_OPENAI_API_KEY; AZURE_OPENAI_ENDPOINT is missing)
  bedrock (AWS_PROFILE is set; AWS_REGION is missing)
  vertex (GOOGLE_OAUTH_ACCESS_TOKEN, or credentials of the machine; GOOGLE_CLOUD_PROJECT is missing)
`)
  expect(groq).toMatchObject({ code: 0, stdout: expect.stringContaining('groq (GROQ_API_KEY)') })
  expect(unknown).toMatchObject({
    code: 1,
    stderr: 'lango: Unknown provider "antropic". Did you mean anthropic?\n',
  })
})

test.each([
  [
    ['lango', ''],
    ['chat', 'run', 'sessions', 'doctor'],
  ],
  [
    ['lango', 'se'],
    ['serve', 'sessions'],
  ],
  [
    ['lango', 'sessions', ''],
    ['list', 'show', 'export', 'import', 'delete'],
  ],
  [['lango', 'sessions', 'list', '--li'], ['--limit']],
  [
    ['lango', 'run', '--s'],
    ['--session', '--stream', '--store'],
  ],
  [
    ['lango', 'completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
  [
    ['lango', 'lint', '--profile', 'gem'],
    ['gemini-2', 'gemini-3', 'gemini-3-strict'],
  ],
])('completion in bash of %j offers %j', async (words, offered) => {
  const { bash } = await scripts()
  const quoted = words.map(word => `'${word}'`).join(' ')
  const program = `${bash}\nCOMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _lango; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout } = await execute('bash', ['--norc', '-c', program])
  expect(stdout.trimEnd().split('\n')).toEqual(expect.arrayContaining(offered))
})

test('completion for zsh and fish names every command; an unknown shell is refused', async () => {
  const { zsh, fish } = await scripts()
  expect(zsh).toMatch(/^#compdef lango\n/)
  expect(zsh).toContain("'sessions list') choices='--search --limit")
  expect(fish).toContain("complete -c lango -n '__fish_use_subcommand' -f -a sessions -d ")
  expect(fish).toContain("__fish_seen_subcommand_from list' -l limit -s n -r -d ")
  expect((await lango(['completion', 'tcsh'], { cwd: import.meta.dirname })).stderr).toBe(
    'lango: No completion for the shell "tcsh". Use bash, zsh or fish.\n',
  )
})

let made: Promise<{ bash: string; zsh: string; fish: string }> | undefined

/** Each script is printed once for all tests. */
function scripts() {
  const print = async (shell: string) =>
    (await lango(['completion', shell], { cwd: import.meta.dirname })).stdout
  made ??= Promise.all(['bash', 'zsh', 'fish'].map(print)).then(([bash = '', zsh = '', fish = '']) => ({
    bash,
    zsh,
    fish,
  }))
  return made
}
