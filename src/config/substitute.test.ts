import { expect, test } from 'vitest'
import { isSecretVariable, mayHoldSecret } from './substitute.js'

test.each([
  'OPENAI_API_KEY',
  'TEAM_OPENAI_KEY',
  'GITHUB_TOKEN',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'GROQ_API_KEY_2',
  'PGPASSWORD',
  'DB_PASS',
  'CLIENT_SECRET',
  'apikey',
  'GOOGLE_APPLICATION_CREDENTIALS',
])('%s is a secret by its name', name => {
  expect(isSecretVariable(name)).toBe(true)
})

test.each([
  'DATABASE_URL',
  'HOME',
  'PWD',
  'LANGO_TOKEN_BUDGET',
  'MONKEY',
  'KEYBOARD',
  'PORT',
  'COMPASS',
  'BYPASS',
])('%s is no secret by its name', name => {
  expect(isSecretVariable(name)).toBe(false)
})

test.each([
  [['providers', 'openai', 'apiKey'], 'OPENAI_API_KEY', true],
  [['providers', 'openai', 'headers', 'x-key'], 'TEAM_KEY', true],
  [['providers', 'openai', 'baseUrl'], 'OPENAI_API_KEY', false],
  [['mcpServers', 'git', 'env', 'GITHUB_TOKEN'], 'GITHUB_TOKEN', true],
  [['mcpServers', 'git', 'headers', 'authorization'], 'GITHUB_TOKEN', true],
  [['mcpServers', 'git', 'oauth', 'clientSecret'], 'GITHUB_SECRET', true],
  [['mcpServers', 'git', 'oauth', 'scope'], 'GITHUB_SECRET', false],
  [['mcpServers', 'git', 'args', 0], 'GITHUB_TOKEN', false],
  [['mcpServers', 'git', 'url'], 'GITHUB_TOKEN', false],
  [['tools', 'env', 'GH_TOKEN'], 'GITHUB_TOKEN', true],
  [['server', 'tokens', 0], 'LANGO_SERVER_TOKEN', true],
  [['telemetry', 'headers', 'x-key'], 'OTEL_KEY', true],
  [['agent', 'instruction'], 'OPENAI_API_KEY', false],
  [['log', 'file'], 'OPENAI_API_KEY', false],
  [['store'], 'DATABASE_URL', true],
])('at %j, %s may be filled in: %s', (path, variable, allowed) => {
  expect(mayHoldSecret({ path, text: `\${${variable}}`, variable, value: 'a-secret' })).toBe(allowed)
})

test.each([
  [`postgres://me:\${PGPASSWORD}@db/x`, 'PGPASSWORD', true],
  [`postgres://me:\${OPENAI_API_KEY}@db/x`, 'OPENAI_API_KEY', false],
  [`sqlite:./\${DB_PASSWORD}.db`, 'DB_PASSWORD', false],
])('the store %s may hold %s: %s', (text, variable, allowed) => {
  expect(mayHoldSecret({ path: ['store'], text, variable, value: 'x' })).toBe(allowed)
})

test('a number is no secret, whatever its name', () => {
  const use = { path: ['history', 'maxMessages'], text: `\${MAX_TOKENS}`, variable: 'MAX_TOKENS' }
  expect(mayHoldSecret({ ...use, value: '4000' })).toBe(true)
  expect(mayHoldSecret({ ...use, value: 'sk-1' })).toBe(false)
})
