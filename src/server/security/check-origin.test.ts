import { expect, test } from 'vitest'
import { type Asked, checkOrigin, isLoopback } from './check-origin.js'

const LOOPBACK = {
  loopbackOnly: true,
  host: '127.0.0.1',
  allowedOrigins: ['https://chat.example.com'],
  allowedHosts: [],
}
const OPEN = {
  loopbackOnly: false,
  host: '0.0.0.0',
  allowedOrigins: ['https://chat.example.com:8443'],
  allowedHosts: ['named.example.com'],
}

function asked(facts: Partial<Asked>): Asked {
  return {
    method: 'GET',
    host: 'localhost:1',
    origin: undefined,
    fetchSite: undefined,
    fetchMode: undefined,
    ...facts,
  }
}

test.each([
  [LOOPBACK, 'localhost:18789', true],
  [LOOPBACK, '127.0.0.1', true],
  [LOOPBACK, '127.1.2.3:80', true],
  [LOOPBACK, '[::1]:18789', true],
  [LOOPBACK, 'chat.example.com', true],
  [LOOPBACK, 'example.com', false],
  [LOOPBACK, '10.0.0.1', false],
  [LOOPBACK, '127.0.0.1.example.com', false],
  [LOOPBACK, 'localhost:18789/x', false],
  [OPEN, '10.0.0.1:18789', true],
  [OPEN, '[fd00::1]:18789', true],
  [OPEN, 'chat.example.com:8443', true],
  [OPEN, 'named.example.com:18789', true],
  [OPEN, 'rebound.example.com', false],
])('a server with %o accepts the host name %s: %s', (rules, host, isAnswered) => {
  const check = () => checkOrigin(rules, asked({ host }))
  if (isAnswered) expect(check()).toBeUndefined()
  else expect(check).toThrowError('host name is not allowed')
})

test.each<[Partial<Asked>, 'own' | 'allowed' | 'refused']>([
  [{ origin: 'http://localhost:1' }, 'own'],
  [{ origin: 'https://localhost:1' }, 'own'],
  [{ origin: 'https://chat.example.com' }, 'allowed'],
  [{ origin: 'http://localhost:2' }, 'refused'],
  [{ origin: 'null' }, 'refused'],
  [{ fetchSite: 'cross-site' }, 'refused'],
  [{ fetchSite: 'cross-site', fetchMode: 'navigate' }, 'own'],
  [{ fetchSite: 'cross-site', fetchMode: 'navigate', method: 'POST' }, 'refused'],
  [{ fetchSite: 'same-origin', method: 'POST' }, 'own'],
  [{ fetchSite: 'none', method: 'POST' }, 'own'],
])('a request of a page with %o is %s', (facts, outcome) => {
  const check = () => checkOrigin(LOOPBACK, asked(facts))
  if (outcome === 'refused') expect(check).toThrowError('A page of another site')
  else expect(check()).toBe(outcome === 'allowed' ? facts.origin : undefined)
})

test.each([
  ['localhost', true],
  ['::1', true],
  ['127.0.0.1', true],
  ['0.0.0.0', false],
  ['::', false],
  ['127.example.com', false],
])('%s is loopback: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected)
})
