// A pooler in statement mode, as PgBouncer has it: it answers BEGIN with an error and closes the connection. Needs no
// PgBouncer; `pgbouncer.test.ts` shows that the real one does the same.
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openStore } from '../../src/store/open-store.js'
import { failureOf } from '../conformance/store/drivers.js'
import { createDatabase } from '../support/postgres.js'

const REFUSAL = fatalError('08P01', 'transaction blocks not allowed in statement pooling mode')

test('a pooler that refuses BEGIN and closes the connection is reported with the modes that work', async () => {
  const pooler = await statementPooler(REFUSAL)
  const failure = await failureOf(openStore(pooler.url))
  expect(failure).toMatchObject({ code: 'store-unavailable', retryable: false })
  expect(failure.message).toContain('transaction blocks not allowed in statement pooling mode')
  expect(failure.message).toContain('a pooler in session or transaction mode is needed')
  expect(pooler.begins()).toBe(1)
})

test('a pooler that closes the connection at BEGIN without an answer is reported with the modes that work', async () => {
  // As if each look at the clock were three seconds later: an outage is waited for.
  let lateMs = 0
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => {
    lateMs += 3000
    return now() + lateMs
  })
  onTestFinished(() => void vi.restoreAllMocks())
  const pooler = await statementPooler(Buffer.alloc(0))
  const failure = await failureOf(openStore(pooler.url))
  expect(failure).toMatchObject({ code: 'store-unavailable', retryable: true })
  expect(failure.message).toContain('A pooler in between must be in session or transaction mode')
  expect(pooler.begins()).toBeGreaterThan(1)
})

/** A proxy in front of a new database, which answers the first BEGIN of a connection with `refusal` and closes it. */
async function statementPooler(refusal: Buffer): Promise<{ url: string; begins(): number }> {
  const database = await createDatabase()
  let begins = 0
  const server = createServer(near => {
    const far = connect(Number(new URL(database.url).port), '127.0.0.1')
    for (const socket of [near, far]) socket.on('error', () => {})
    near.on('data', chunk => {
      if (!chunk.includes('BEGIN')) return void far.write(chunk)
      begins += 1
      near.end(refusal)
      far.destroy()
    })
    near.on('close', () => far.destroy())
    far.on('data', chunk => near.write(chunk))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await new Promise(resolve => server.close(resolve))
    await database.drop()
  })
  const { port } = server.address() as AddressInfo
  return { url: Object.assign(new URL(database.url), { port: String(port) }).href, begins: () => begins }
}

/** The protocol's ErrorResponse: type, length, and fields that end with a zero byte. */
function fatalError(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
