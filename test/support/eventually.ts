import { expect } from 'vitest'
import { PATIENCE_MS } from './browser.js'

/** An expectation that is asked again until it holds, for as long as a page may take. */
export function eventually<Value>(read: () => Value | Promise<Value>) {
  return expect.poll(read, { timeout: PATIENCE_MS })
}
