import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = mkdtempSync(join(tmpdir(), 'lango-trust-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

/** The list of trusted folders of this test process: the user's own is neither read nor written. */
export const TRUST_FILE = join(folder, 'trust.json')
