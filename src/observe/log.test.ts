import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../test/support/temporary-folder.js'
import { AgentError } from '../errors.js'
import { createLogger, type LogOptions } from './log.js'

/** A log and the lines that were written to it. */
async function openLog(options: LogOptions = {}) {
  const lines: string[] = []
  const logger = await createLogger({ destination: { write: line => lines.push(line) }, ...options })
  return { logger, lines, parsed: () => lines.map(line => JSON.parse(line) as Record<string, unknown>) }
}

test('a log line is JSON with level, time, message and fields', async () => {
  const { logger, parsed } = await openLog()
  logger.info('Run started', { runId: 'r', turns: 3, inputTokens: 12 })
  const [line] = parsed()
  expect(line).toMatchObject({
    level: 'info',
    message: 'Run started',
    runId: 'r',
    turns: 3,
    inputTokens: 12,
  })
  expect(Number.isNaN(Date.parse(String(line?.time)))).toBe(false)
})

test.each([
  ['debug', ['debug', 'info', 'warn', 'error']],
  ['info', ['info', 'warn', 'error']],
  ['warn', ['warn', 'error']],
  ['error', ['error']],
  ['silent', []],
] as const)('the log level %s writes %j', async (level, passing) => {
  const { logger, parsed } = await openLog({ level })
  for (const name of ['debug', 'info', 'warn', 'error'] as const) logger[name]('x')
  expect(parsed().map(line => line.level)).toEqual(passing)
})

test.each([
  ['a field named apiKey', { apiKey: 'hush-hush' }],
  ['a header', { headers: { Authorization: 'hush-hush', 'x-api-key': 'hush-hush' } }],
  ['a token', { accessToken: 'hush-hush', tokens: ['hush-hush'] }],
  ['a password in a list', { users: [{ password: 'hush-hush' }] }],
  ['a key of OpenAI or Anthropic', { note: 'used sk-ant-api03-hush-hush-1234 today' }],
  ['a key of Google', { note: 'AIzaSyhush-hush_12345678901234567890' }],
  ['a bearer token', { note: 'sent Bearer hush-hush.abc' }],
  ['a JSON Web Token', { note: 'x.session-eyJhbGciOiJI.hush-hush1.hush-hush_2 end' }],
  ['a password in an address', { url: 'postgres://ann:hush-hush@db:5432/x' }],
  ['a password with strange characters', { url: 'postgres://ann:p:hush-hush@@db/x' }],
  ['a key in a query', { url: 'https://x.example/?alt=sse&key=hush-hush' }],
  ['an error', { error: new AgentError('provider-auth', 'Bearer hush-hush.abc was refused') }],
])('secrets in %s are not logged, even with content', async (_name, fields) => {
  const { logger, lines } = await openLog({ content: true })
  logger.warn('Something', fields)
  expect(lines).toHaveLength(1)
  expect(lines.join()).not.toContain('hush-hush')
  expect(lines.join()).toContain('[hidden]')
})

test('secrets in a log message are not written', async () => {
  const { logger, lines } = await openLog()
  logger.error('Bearer hush-hush.abc')
  expect(lines.join()).not.toContain('hush-hush')
})

describe('content', () => {
  const fields = {
    args: { query: 'roses' },
    event: { parts: [{ text: 'roses' }] },
    result: ['roses'],
    text: 'roses',
  }

  test('content is counted and not logged', async () => {
    const { logger, lines, parsed } = await openLog()
    logger.info('x', fields)
    expect(lines.join()).not.toContain('roses')
    expect(parsed()[0]).toMatchObject({ text: '[5 characters]', result: '[9 characters]' })
  })

  test('content is logged when it is configured', async () => {
    const { logger, parsed } = await openLog({ content: true })
    logger.info('x', fields)
    expect(parsed()[0]).toMatchObject(fields)
  })
})

test('a field cannot overwrite those of the log line', async () => {
  const { logger, lines } = await openLog()
  const circle: Record<string, unknown> = {}
  circle.self = circle
  logger.info('real', {
    level: 'fake',
    time: 0,
    message: 'fake',
    circle,
    big: 10n,
    map: new Map(),
    nothing: undefined,
  })
  expect(lines.join()).not.toContain('fake')
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ message: 'real', map: '[Map]', big: '[bigint]' })
})

test('pretty log lines have time, level, message and fields', async () => {
  const { logger, lines } = await openLog({ pretty: true })
  logger.warn('Slow', { tool: 'search' })
  expect(lines.join()).toMatch(/^\d\d:\d\d:\d\d WARN {2}Slow tool="search"\n$/)
})

test('a log file has every line before close returns, in a folder that is made for it', async () => {
  const file = join(await temporaryFolder(), 'logs', 'lango.log')
  const logger = await createLogger({ destination: file })
  logger.info('one')
  logger.info('two')
  logger.close()
  const lines = (await readFile(file, 'utf8')).trim().split('\n')
  expect(lines.map(line => (JSON.parse(line) as { message: string }).message)).toEqual(['one', 'two'])
})
