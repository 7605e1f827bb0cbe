import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openStore } from '../../../src/store/open-store.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { DRIVERS, failureOf, newKey, useStore } from './drivers.js'

const INSTEAD = { memory: 'use a SQLite file', postgres: 'Use pg_dump' }

describe.each(DRIVERS)('backup of $name', driver => {
  const place = useStore(driver)

  test('a SQLite store is copied to a file; another one refuses and says what to do instead', async () => {
    const key = newKey()
    await place.store.createSession(key)
    const path = join(await temporaryFolder(), 'copy.db')
    if (driver.name !== 'sqlite') {
      const { code, message } = await failureOf(place.store.backup(path))
      expect(code).toBe('unsupported')
      expect(message).toContain(INSTEAD[driver.name])
      return
    }
    expect(await place.store.backup(path)).toMatchObject({ path, sessions: 1 })
    const copy = await openStore(`sqlite:${path}`)
    expect(await copy.describeSession(key)).toMatchObject({ key })
    await copy.close()
  })
})
