// The types that programs see and the schema that checks them name the same keys. tsc fails here when they part.
import { expectTypeOf, test } from 'vitest'
import type { RunConfig } from '../../src/adk/sdk.js'
import type { LangoConfigInput } from '../../src/config/config.js'
import type { OptionsInput } from '../../src/config/parse-config.js'
import type { RetryPolicy } from '../../src/provider/retry.js'
import type { RuntimeOptions } from '../../src/runtime/options.js'

type Keys<Value> = keyof NonNullable<Value>
/** The keys of every member of a choice. */
type AllKeys<Value> = Value extends unknown ? keyof Value : never
type Item<List> = NonNullable<List> extends readonly (infer Element)[] ? Element : never
type Entry<Record_> = NonNullable<NonNullable<Record_>[keyof NonNullable<Record_>]>
/** Options that are data, without the providers that were made in code. */
type ProviderData<Options> = WithKey<Entry<Options>>
type WithKey<Option> = Option extends unknown ? ('apiKey' extends keyof Option ? Option : never) : never

type Given = RuntimeOptions
type Checked = OptionsInput

test('the type of every option group has the keys of its schema', () => {
  expectTypeOf<Keys<Given>>().toEqualTypeOf<Keys<Checked>>()
  expectTypeOf<Keys<Given['agent']>>().toEqualTypeOf<Keys<Checked['agent']>>()
  expectTypeOf<keyof Item<NonNullable<Given['agent']>['subAgents']>>().toEqualTypeOf<
    keyof Item<NonNullable<Checked['agent']>['subAgents']>
  >()
  expectTypeOf<Keys<Given['history']>>().toEqualTypeOf<Keys<Checked['history']>>()
  expectTypeOf<Keys<Given['tools']>>().toEqualTypeOf<Keys<Checked['tools']>>()
  expectTypeOf<Keys<NonNullable<Given['tools']>['needsApproval']>>().toEqualTypeOf<
    Keys<NonNullable<Checked['tools']>['needsApproval']>
  >()
  expectTypeOf<AllKeys<Entry<Given['mcpServers']>>>().toEqualTypeOf<keyof Entry<Checked['mcpServers']>>()
  expectTypeOf<Keys<Given['telemetry']>>().toEqualTypeOf<Keys<Checked['telemetry']>>()
  expectTypeOf<Keys<Given['adk']>>().toEqualTypeOf<Keys<Checked['adk']>>()
  expectTypeOf<keyof RunConfig>().toEqualTypeOf<Keys<NonNullable<Checked['adk']>['runConfig']>>()
})

test('the types of providers have the keys of their schema', () => {
  type GivenProvider = ProviderData<Given['providers']>
  type CheckedProvider = ProviderData<Checked['providers']>
  expectTypeOf<keyof GivenProvider>().toEqualTypeOf<keyof CheckedProvider>()
  expectTypeOf<keyof RetryPolicy>().toEqualTypeOf<Keys<CheckedProvider['retry']>>()
  expectTypeOf<keyof Entry<GivenProvider['models']>>().toEqualTypeOf<keyof Entry<CheckedProvider['models']>>()
  expectTypeOf<Keys<Entry<GivenProvider['models']>['price']>>().toEqualTypeOf<
    Keys<Entry<CheckedProvider['models']>['price']>
  >()
})

test('the options of a program are those of the schema', () => {
  expectTypeOf<Given['app']>().toExtend<Checked['app']>()
  expectTypeOf<Given['store']>().toExtend<Checked['store']>()
  expectTypeOf<Given['model']>().toExtend<Checked['model']>()
  expectTypeOf<Given['logger']>().toExtend<Checked['logger']>()
  expectTypeOf<Given['rootAgent']>().toExtend<Checked['rootAgent']>()
  expectTypeOf<Given['history']>().toExtend<Checked['history']>()
  expectTypeOf<Given['telemetry']>().toExtend<Checked['telemetry']>()
  expectTypeOf<NonNullable<Given['agent']>['maxTurns']>().toExtend<
    NonNullable<Checked['agent']>['maxTurns']
  >()
})

test('a configuration file has the keys of a program, except those that only one of them reads', () => {
  expectTypeOf<Exclude<keyof LangoConfigInput, '$schema' | 'server' | 'hooks' | 'log'>>().toEqualTypeOf<
    Exclude<keyof OptionsInput, 'model' | 'logger'>
  >()
})
