/**
 * Memory. With `--data DIR`, a folder of LoCoMo conversations: the share of questions whose context holds all of their
 * evidence, on every store. Without it, and with `--speed`: what recall and the index cost at 100,000 messages.
 *
 *     npm run bench -- memory --data DIR [--only 41,42] [--store memory|sqlite|postgres] [--json]
 *     npm run bench -- memory [--json]
 */

import { benchEvidence } from './support/memory-evidence.js'
import { benchRecall } from './support/memory-speed.js'
import { Report } from './support/report.js'

const report = new Report('memory')
const flag = (name: string) => {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}
const data = flag('--data')
if (data !== undefined) {
  await benchEvidence(report, { data, only: flag('--only')?.split(','), store: flag('--store') })
}
if (data === undefined || process.argv.includes('--speed')) await benchRecall(report)
report.finish()
