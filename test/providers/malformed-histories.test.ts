// Malformed histories, sent by our providers with the vendors' SDKs to servers that refuse them unrepaired. Here one row per
// profile; test/properties/repair-rows judges all rows for all profiles without HTTP.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ProviderMessage } from '../../src/provider/provider.js'
import type { ProfileName } from '../../src/provider/repair/profile.js'
import { type StrictProvider, startStrictProvider } from '../../src/testing/start-strict-provider.js'
import { MALFORMED_HISTORIES, type MalformedHistory } from '../fixtures/malformed-histories.js'
import { strictJudge } from '../properties/repair-judge.js'
import { signRow } from '../properties/sign-row.js'
import { LONG } from '../support/tiers.js'
import { collect } from './collect.js'
import { ALL_PROFILES, strictTarget } from './strict-profiles.js'

const servers = new Map<ProfileName, StrictProvider>()
beforeAll(async () => {
  for (const profile of ALL_PROFILES)
    servers.set(profile, await startStrictProvider({ profile, script: () => ({ text: 'Fine.' }) }))
})
afterAll(async () => {
  for (const server of servers.values()) await server.close()
})

interface Outcome {
  /** The type of the last event of the answer. */
  end: string | undefined
  refusals: string[]
}

async function send(
  profile: ProfileName,
  history: readonly ProviderMessage[],
  repairMode?: 'explain',
): Promise<Outcome> {
  const server = servers.get(profile) as StrictProvider
  const { provider, model } = strictTarget(profile, server.baseUrl, { retry: { maxAttempts: 1 } })
  const before = server.violations.length
  const messages = signRow(history)
  const events = await collect(provider, { model, messages, ...(repairMode ? { repairMode } : {}) })
  return { end: events.at(-1)?.type, refusals: server.violations.slice(before).map(({ code }) => code) }
}

/** A row that the profile's server refuses: another one for each profile, as far as there are. */
function refusedRow(profile: ProfileName): MalformedHistory {
  const rows = MALFORMED_HISTORIES.filter(row => strictJudge(signRow(row.history), profile).length > 0)
  return rows[ALL_PROFILES.indexOf(profile) % rows.length] as MalformedHistory
}

test.each(ALL_PROFILES)(
  'the server for %s refuses a malformed history over HTTP and accepts it repaired',
  async profile => {
    const { history } = refusedRow(profile)
    const unrepaired = await send(profile, history, 'explain')
    expect(unrepaired).toMatchObject({ end: 'error', refusals: [expect.any(String)] })
    expect(await send(profile, history)).toEqual({ end: 'done', refusals: [] })
  },
)

test.each(ALL_PROFILES)('the server for %s accepts all rows over HTTP after repair', LONG, async profile => {
  const failures: unknown[] = []
  for (const { row, title, history } of MALFORMED_HISTORIES) {
    const outcome = await send(profile, history)
    if (outcome.end !== 'done' || outcome.refusals.length > 0) failures.push({ row, title, ...outcome })
  }
  expect(failures).toEqual([])
})

test('most unrepaired rows are refused over HTTP', LONG, async () => {
  const refused = new Set<number>()
  for (const { row, history, rejectedBy } of MALFORMED_HISTORIES) {
    for (const profile of rejectedBy)
      if ((await send(profile, history, 'explain')).end === 'error') refused.add(row)
  }
  expect(refused.size).toBeGreaterThan(25)
})
