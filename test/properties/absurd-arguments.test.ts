import { expect, test } from 'vitest'
import * as adk from '../../src/entries/adk.js'
import * as client from '../../src/entries/client.js'
import * as provider from '../../src/entries/provider.js'
import * as store from '../../src/entries/store.js'
import * as testing from '../../src/entries/testing.js'
import { AgentError } from '../../src/errors.js'
import * as main from '../../src/index.js'

// Callers without a type checker pass anything. Each public function refuses it in its own words, or accepts it.

const ARGUMENTS: unknown[][] = [
  [],
  [null],
  [42],
  ['text'],
  [{}],
  [[null]],
  [null, null],
  [[{}], 'openai-chat'],
  [[null], 'openai-chat'],
  [null, 'openai-chat'],
  [[], null],
  [[], 42],
  [{}, {}],
]

/** Made by Lango, not by callers. */
const NOT_CALLED = new Set(['ClientError', 'AgentError'])

const PUBLIC = Object.entries({ adk, client, provider, store, testing, main }).flatMap(([entry, names]) =>
  Object.entries(names).flatMap(([name, value]) =>
    typeof value === 'function' && !NOT_CALLED.has(name) ? [[entry, name, value] as const] : [],
  ),
)

async function failureOf(call: (...values: unknown[]) => unknown, values: unknown[]): Promise<unknown> {
  try {
    const isClass = Function.prototype.toString.call(call).startsWith('class ')
    const result: unknown = isClass ? Reflect.construct(call, values) : await call(...values)
    if (typeof result === 'object' && result !== null && 'close' in result) {
      await (result as { close(): unknown }).close()
    }
    return undefined
  } catch (error) {
    return error
  }
}

test.each(PUBLIC)('%s: %s refuses arguments of the wrong type as invalid', async (_entry, _name, value) => {
  for (const values of ARGUMENTS) {
    const error = await failureOf(value as (...values: unknown[]) => unknown, values)
    if (error === undefined) continue
    expect(error, JSON.stringify(values)).toBeInstanceOf(AgentError)
    expect((error as AgentError).code).toMatch(/^invalid-(argument|config)$/)
  }
})
