// ADK's workflows behave as on bare ADK: the same requests, effects, events, state and failures, also on a slow store.
import { LogLevel, setLogLevel } from '@google/adk'
import { expect, test } from 'vitest'
import { WORKFLOW_CASES, type WorkflowCase } from './workflow-cases.js'
import { type Observation, observe, WAYS } from './workflow-ways.js'

setLogLevel(LogLevel.ERROR)

const bare = new Map<string, Promise<Observation>>()

/** The behaviour of bare ADK, observed once per case. */
function observeBare(name: string, given: WorkflowCase): Promise<Observation> {
  const known = bare.get(name) ?? observe('bare', given)
  bare.set(name, known)
  return known
}

for (const [name, given] of Object.entries(WORKFLOW_CASES)) {
  test.concurrent.each(WAYS)(`${name} (%s) behaves as on bare ADK`, async way => {
    const seen = await observe(way, given)
    const other = expected(await observeBare(name, given), given)
    const requests = given.isKeptInOrder && way.startsWith('runtime') ? seen.requests : other.requests
    expect(comparable(seen, given)).toEqual(comparable({ ...other, requests }, given))
  })
}

const DIFFERENT = Object.entries(WORKFLOW_CASES).flatMap(([name, { differs }]) =>
  differs ? [{ name, ...differs }] : [],
)

test.each(DIFFERENT)(
  'ADK itself has the lines that Lango changes on purpose: $name',
  async ({ name, lines }) => {
    const given = WORKFLOW_CASES[name]
    const seen = given && (await observeBare(name, given))
    expect([...(seen?.requests ?? []), ...(seen?.events ?? [])]).toEqual(
      expect.arrayContaining(Object.keys(lines)),
    )
  },
)

/** What Lango does, by what ADK does. */
function expected(bare: Observation, { differs }: WorkflowCase): Observation {
  const change = (line: string) => differs?.lines[line] ?? line
  return { ...bare, requests: bare.requests.map(change), events: bare.events.map(change) }
}

function comparable(seen: Observation, { isUnordered = false }: WorkflowCase): Observation {
  const order = (lines: string[]) => (isUnordered ? [...lines].sort() : lines)
  return {
    ...seen,
    requests: order(seen.requests),
    effects: order(seen.effects),
    events: order(seen.events),
  }
}
