import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Scope } from './scope.js'

const [run, call] = [new Scope<string>('run'), new Scope<string>('call')]

test('a value is found by the code that works for it, and by no other', async () => {
  const seen = async (value: string) =>
    run.run(value, async () => {
      await sleep(1)
      return run.getStore()
    })
  expect(await Promise.all([seen('one'), seen('two')])).toEqual(['one', 'two'])
  expect(run.getStore()).toBeUndefined()
})

test('scopes that are entered inside others keep their values, and leave none behind', async () => {
  const inner = await run.run('run', () =>
    call.run('call', async () => {
      await sleep(1)
      return [run.getStore(), call.getStore(), run.run('nested', () => [run.getStore(), call.getStore()])]
    }),
  )
  expect(inner).toEqual(['run', 'call', ['nested', 'call']])
  expect(run.run('later', () => call.getStore())).toBeUndefined()
})

test('work that throws leaves its scope', () => {
  const failing = () =>
    run.run('run', () => {
      throw new TypeError('No.')
    })
  expect(failing).toThrow('No.')
  expect(run.getStore()).toBeUndefined()
})
