// One half of compare-behaviour.mjs: runs the same program on the built package of one checkout and prints what
// it did as JSON: bodies on the wire, run events, stored rows, and what the command line prints as JSON.
// `node scripts/record-behaviour.mjs <checkout> <histories.json> <output.json>`
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const [checkout, historiesFile, output] = process.argv.slice(2).map(word => resolve(word))
const load = name => import(pathToFileURL(join(checkout, 'dist', name)).href)
const { createRuntime, defineTool } = await load('index.js')
const { createProvider } = await load('entries/provider.js')
const { startStrictProvider, STRICT_PROFILES } = await load('entries/testing.js')
const histories = JSON.parse(readFileSync(historiesFile, 'utf8'))
const folder = mkdtempSync(join(tmpdir(), 'lango-behaviour-'))

/** One model name for each profile; a server of a profile does not care which. */
const MODELS = {
  'gemini-2': 'gemini-2.5-flash',
  'gemini-3': 'gemini-3.5-flash',
  'gemini-3-strict': 'gemini-3.8-flash',
  'openai-chat': 'gpt-4.1',
  'openai-responses': 'gpt-5.6',
  'anthropic-4.5': 'claude-sonnet-4-5',
  'anthropic-4.6': 'claude-sonnet-4-6',
}

const search = id => ({ name: 'search', args: { query: id } })
/** What is said in one session, with what the model does; the last one calls until the limit stops it. */
const TURNS = [
  {
    text: 'Look for two things',
    steps: [
      { thinking: 'Two at once.', text: 'Looking. ', toolCalls: [search('a'), search('b')] },
      { text: 'Found both.' },
    ],
  },
  {
    text: 'Now something that fails',
    steps: [{ toolCalls: [{ name: 'fail', args: { why: 'of course' } }] }, { text: 'It failed.' }],
  },
  {
    text: 'For context: the helper knows',
    steps: [
      { toolCalls: [{ name: 'transfer_to_agent', args: { agentName: 'helper' } }] },
      { toolCalls: [search('c')] },
      { text: 'The helper found it.' },
    ],
  },
  {
    text: 'Delete it',
    steps: [{ toolCalls: [{ name: 'remove', args: { name: 'it' } }] }, { text: 'I may not.' }],
  },
  {
    text: 'Never stop',
    steps: Array.from({ length: 12 }, (_, index) => ({ toolCalls: [search(`again ${index}`)] })),
  },
]

const record = { wire: {}, repaired: {}, events: {}, inspected: {}, rows: {}, cli: {} }
try {
  for (const profile of STRICT_PROFILES) {
    await recordHistories(profile)
    await recordConversation(profile)
  }
  recordCli()
  writeFileSync(output, JSON.stringify(record).replaceAll(folder, '<folder>'))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function optionsFor(profile, baseUrl) {
  const common = { apiKey: 'test-key', baseUrl, profile }
  if (profile.startsWith('gemini')) return { type: 'gemini', ...common }
  if (profile.startsWith('anthropic')) return { type: 'anthropic', ...common }
  if (profile === 'openai-responses') return { type: 'openai', api: 'responses', ...common }
  return profile === 'openai-chat'
    ? { type: 'openai', api: 'chat', ...common }
    : { type: 'openai-compatible', ...common }
}

/** Every malformed history, sent by the provider: the body, what was repaired, and how the server took it. */
async function recordHistories(profile) {
  const server = await startStrictProvider({ profile, script: () => ({ text: 'Fine.' }) })
  const provider = createProvider({
    ...optionsFor(profile, server.baseUrl),
    env: {},
    retry: { sleep: async () => {} },
  })
  for (const { name, history } of histories) {
    const before = server.requests.length
    const events = []
    try {
      for await (const event of provider.generate({ model: MODELS[profile] ?? 'model', messages: history }))
        events.push(event)
    } catch (error) {
      events.push({ type: 'thrown', code: error.code })
    }
    const bodies = server.requests.slice(before).map(({ body }) => body)
    record.wire[`${profile}/${name}`] = bodies
    const { repairs = [], mappedIds = {} } = events.find(({ type }) => type === 'request') ?? {}
    const end = events.at(-1)
    record.repaired[`${profile}/${name}`] = {
      repairs,
      mappedIds,
      end: { type: end.type, code: end.error?.code ?? end.code, finishReason: end.finishReason },
    }
  }
  await server.close()
}

async function recordConversation(profile) {
  let steps = []
  const server = await startStrictProvider({ profile, script: () => steps.shift() ?? { text: 'Done.' } })
  const file = join(folder, `${profile}.db`)
  const model = `${profile}/${MODELS[profile] ?? 'model'}`
  const runtime = await createRuntime({
    store: `sqlite:${file}`,
    providers: { [profile]: optionsFor(profile, server.baseUrl) },
    history: { maxMessageTokenBudget: 900 },
    agent: {
      name: 'root',
      model,
      instruction: 'Be brief.',
      tools: tools(),
      maxTurns: 5,
      subAgents: [{ name: 'helper', description: 'Knows more', instruction: 'Help.', tools: tools() }],
    },
  })
  const events = []
  for (const turn of TURNS) {
    steps = [...turn.steps]
    for await (const event of runtime.run({ sessionId: 'talk', text: turn.text, onApproval: () => 'no' })) {
      // An error of a run is an instance of a class; its JSON is what leaves the process.
      events.push(JSON.parse(JSON.stringify(event)))
    }
  }
  const runs = events.filter(({ type }) => type === 'run-start').map(({ runId }) => runId)
  record.inspected[profile] = JSON.parse(
    JSON.stringify(await Promise.all(runs.map(id => runtime.inspect(id)))),
  )
  await runtime.close()
  record.events[profile] = events
  record.wire[`${profile}/conversation`] = server.requests.map(({ body }) => body)
  record.rows[profile] = dump(file)
  await server.close()
}

function tools() {
  const text = name => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] })
  return [
    defineTool({
      name: 'search',
      description: 'Searches',
      parameters: text('query'),
      effect: 'read',
      execute: ({ query }) => ({ found: `${query} `.repeat(40) }),
    }),
    defineTool({
      name: 'fail',
      description: 'Fails',
      parameters: text('why'),
      effect: 'read',
      execute: ({ why }) => ({ error: why }),
    }),
    defineTool({
      name: 'remove',
      description: 'Removes',
      parameters: text('name'),
      effect: 'once',
      needsApproval: true,
      execute: () => 'removed',
    }),
  ]
}

/**
 * All tables of a database, with their definitions; JSON in a column is read. Saved requests are cut and packed by
 * their bytes, which ids change, so they are compared put together, as "inspected". The tables in which
 * SQLite keeps the full-text index are its own.
 */
function dump(file) {
  const { DatabaseSync } = createRequire(join(checkout, 'package.json'))('@photostructure/sqlite')
  const database = new DatabaseSync(file)
  const objects = database.prepare('SELECT type, name, sql FROM sqlite_master ORDER BY name').all()
  const tables = objects.filter(
    ({ type, name }) =>
      type === 'table' && !/^sqlite_|^lango_request_parts$|^lango_memory_search_/.test(name),
  )
  const rows = Object.fromEntries(
    tables.map(({ name }) => [
      name,
      database
        .prepare(`SELECT * FROM ${name} ORDER BY rowid`)
        .all()
        .map(row => readRow(name, row)),
    ]),
  )
  database.close()
  return { schema: objects.map(({ name, sql }) => ({ name, sql: sql?.replaceAll(/\s+/g, ' ') ?? '' })), rows }
}

/** Columns with random texts, or with what depends on them. */
const RANDOM = {
  lango_entries: new Set(['salt', 'digest']),
  lango_sessions: new Set(['write_id', 'write_digest']),
}

function readRow(table, row) {
  const columns = Object.entries(row).filter(([name]) => !RANDOM[table]?.has(name))
  const isRequest = table === 'lango_entries' && row.kind === 'request'
  return Object.fromEntries(
    columns.map(([name, value]) => [
      name,
      isRequest && name === 'data' ? null : typeof value === 'string' ? readJson(value) : value,
    ]),
  )
}

function readJson(text) {
  if (!/^[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function recordCli() {
  const config = {
    agent: { name: 'root', model: 'demo/demo', instruction: 'Be brief.' },
    store: 'sqlite:./cli.db',
    tools: { builtIn: ['current_time'] },
  }
  writeFileSync(join(folder, 'lango.config.json'), JSON.stringify(config))
  writeFileSync(
    join(folder, 'request.json'),
    JSON.stringify({
      messages: [
        {
          role: 'assistant',
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'user', content: 'Well?' },
      ],
    }),
  )
  const commands = [
    'run --json --session one What-time-is-it?',
    'run --json --session one And-now?',
    'run --json --model nobody/none Hello',
    'sessions list --json',
    'sessions show one --json',
    'sessions show one --raw',
    'sessions show nothing --json',
    'sessions export one',
    'sessions export --all',
    'lint request.json --json',
    'lint --session one --json',
    'doctor --offline --json',
    'doctor --offline --session one --json',
    'models --json',
    'config show --json',
    'config check --json',
    'config schema',
    'nonsense --json',
  ]
  for (const command of commands) {
    const { status, stdout } = spawnSync(
      process.execPath,
      [join(checkout, 'dist/cli/main.js'), ...command.split(' ')],
      {
        cwd: folder,
        env: { PATH: process.env.PATH ?? '', HOME: folder },
        encoding: 'utf8',
      },
    )
    record.cli[command] = { status, output: readOutput(stdout) }
  }
}

/** One JSON value, or one on each line; what is neither is text for people. */
function readOutput(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text.trim().split('\n').map(readJson)
  }
}
