import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../test/support/temporary-folder.js'
import { errcodeOf, isBusy } from './sqlite-file.js'

test.each(['all', 'get', 'run'] as const)('a lock is recognised in an error of %s()', async method => {
  const file = join(await temporaryFolder(), 'locked.db')
  const holder = new DatabaseSync(file, { timeout: 0 })
  const waiter = new DatabaseSync(file, { timeout: 0 })
  onTestFinished(() => {
    holder.close()
    waiter.close()
  })
  const begin = waiter.prepare('BEGIN IMMEDIATE')
  holder.exec('BEGIN EXCLUSIVE')
  let error: unknown
  try {
    begin[method]()
  } catch (thrown) {
    error = thrown
  }
  expect(errcodeOf(error)).toBe(5)
  expect(isBusy(error)).toBe(true)
})
