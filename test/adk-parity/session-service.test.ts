// ADK's service in memory and Lango's on each store, side by side.
import { type BaseSessionService, InMemorySessionService, LogLevel, setLogLevel } from '@google/adk'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { SessionServiceAdapter } from '../../src/adk/session/session-service-adapter.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { openStore } from '../../src/store/open-store.js'
import { createStoreDatabase, type TestDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { longUnless } from '../support/tiers.js'
import { RUN_FACTS } from './run-facts.js'
import { type Fact, OTHERWISE, SESSION_FACTS } from './session-facts.js'

const FACTS = { ...SESSION_FACTS, ...RUN_FACTS }

const STORES = ['memory', 'sqlite', 'postgres'] as const

const URLS = {
  memory: () => 'memory:',
  sqlite: async () => `sqlite:${await temporaryFolder()}/lango.db`,
  postgres: async () => {
    database ??= await createStoreDatabase()
    return database.url
  },
}

let database: TestDatabase | undefined
beforeAll(() => setLogLevel(LogLevel.ERROR))
afterAll(() => database?.drop())

/** The expected answers, asked once. */
const asked = new Map<string, Promise<string>>()

function answerOfAdk(name: string, fact: Fact): Promise<string> {
  const known = asked.get(name) ?? answer(new InMemorySessionService(), fact)
  asked.set(name, known)
  return known
}

/** Answers are compared as JSON: an absent field and one without a value are the same. */
async function answer(sessions: BaseSessionService, fact: Fact): Promise<string> {
  return JSON.stringify(await fact(sessions), (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([one], [two]) => one.localeCompare(two)))
      : value,
  )
}

for (const kind of STORES) {
  describe(`on ${kind}`, longUnless(kind !== 'postgres'), () => {
    let store: SessionStore
    beforeEach(async () => {
      store = await openStore(await URLS[kind]())
    })
    afterEach(async () => {
      await store.close()
      if (kind === 'postgres')
        await database?.query('TRUNCATE lango_sessions, lango_app_state, lango_user_state CASCADE')
    })

    test.each(Object.entries(FACTS))(`the service on ${kind} answers as ADK’s: %s`, async (name, fact) => {
      const ours = await answer(new SessionServiceAdapter(store), fact)
      const { answer: otherwise } = OTHERWISE[name] ?? {}
      const theirs = await answerOfAdk(name, fact)
      if (otherwise === undefined) return expect(JSON.parse(ours)).toEqual(JSON.parse(theirs))
      expect(JSON.parse(ours)).toEqual(otherwise)
      expect(ours).not.toBe(theirs)
    })
  })
}

test('every listed difference from ADK’s service belongs to a question', () => {
  expect(Object.keys(OTHERWISE).filter(name => !(name in FACTS))).toEqual([])
})
