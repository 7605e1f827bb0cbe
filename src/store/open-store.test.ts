import { expect, test } from 'vitest'
import { parseStoreUrl, type StoreLocation } from './open-store.js'

test.each<[string, StoreLocation]>([
  ['memory:', { driver: 'memory' }],
  ['sqlite:lango.db', { driver: 'sqlite', path: 'lango.db', sync: 'full' }],
  ['sqlite:./data/lango.db', { driver: 'sqlite', path: './data/lango.db', sync: 'full' }],
  ['sqlite:/var/lango.db', { driver: 'sqlite', path: '/var/lango.db', sync: 'full' }],
  ['sqlite://data/lango.db', { driver: 'sqlite', path: 'data/lango.db', sync: 'full' }],
  ['sqlite:///var/lango.db', { driver: 'sqlite', path: '/var/lango.db', sync: 'full' }],
  ['SQLITE:my%20store.db?sync=normal', { driver: 'sqlite', path: 'my store.db', sync: 'normal' }],
  [
    'sqlite:data/a.db?create=1&sync=normal',
    { driver: 'sqlite', path: 'data/a.db', sync: 'normal', create: true },
  ],
  ['sqlite:100%.db', { driver: 'sqlite', path: '100%.db', sync: 'full' }],
  [
    'postgres://ann:pw@host:5433/db?pool=3&sslmode=require&query_timeout=500',
    {
      driver: 'postgres',
      connectionString: 'postgres://ann:pw@host:5433/db?sslmode=require',
      poolSize: 3,
      queryTimeoutMs: 500,
      shownUrl: 'postgres://host:5433/db',
    },
  ],
  [
    'postgresql://host/db',
    {
      driver: 'postgres',
      connectionString: 'postgresql://host/db',
      poolSize: 10,
      queryTimeoutMs: 60_000,
      shownUrl: 'postgres://host/db',
    },
  ],
  [
    'postgres://host/db?pooler=transaction&prepare=off&schema=my%20agents&sslmode=no-verify',
    {
      driver: 'postgres',
      connectionString: 'postgres://host/db?sslmode=no-verify',
      poolSize: 10,
      queryTimeoutMs: 60_000,
      shownUrl: 'postgres://host/db',
      pooler: 'transaction',
      prepare: false,
      schema: 'my agents',
    },
  ],
])('parseStoreUrl of %s', (url, location) => {
  expect(parseStoreUrl(url)).toEqual(location)
})

test.each([
  ['pooler=maybe', 'pooler is "maybe"'],
  ['prepare=yes', 'prepare is on or off'],
  ['schema=', 'schema is the name of a schema'],
  ['sslmode=sometimes', 'sslmode is disable, require, verify-full or no-verify'],
])('parseStoreUrl refuses the option %s', (option, message) => {
  expect(() => parseStoreUrl(`postgres://host/db?${option}`)).toThrow(message)
})
