/**
 * How the work of every reader of text from outside grows with the text: four times the text may take four times the
 * work, and not sixteen. Of all texts the one that grows most counts.
 *
 *     npm run bench -- growth [--json]
 */
import { PIECES, READERS, type Reader } from '../test/properties/text-readers.js'
import { Report } from './support/report.js'

const SHORT = 12_000
const TIMES = 4
/** Four times the work is linear; sixteen times is quadratic. */
const MOST_GROWTH = 9
/** Less work than this, in microseconds of CPU, is too little to compare: at this size quadratic work takes longer. */
const LEAST_WORK = 6000
const ATTEMPTS = 10

const report = new Report('growth')
const known = await growthOf(quadratic, 'a')
report.atLeast('the measure finds quadratic work', 'µs', known.short, known.long, MOST_GROWTH)
for (const [name, read] of Object.entries(READERS)) {
  await workOf(read, 'warm up')
  let worst = { long: 1, short: 1, piece: '' }
  for (const piece of PIECES) {
    const growth = await growthOf(read, piece)
    if (growth.long / growth.short > worst.long / worst.short) worst = { ...growth, piece }
  }
  const text = worst.piece === '' ? 'any text' : JSON.stringify(worst.piece)
  report.atMost(`${name}, ${text}`, 'µs', worst.long, worst.short, MOST_GROWTH)
}
report.finish()

function quadratic(text: string): number {
  let found = 0
  for (let at = 0; at < text.length; at += 16) found += text.lastIndexOf('b', at)
  return found
}

/**
 * The least work of several attempts for either length, because a pause of the machine or a collection may lengthen
 * some attempts, and not all. It is enough that the growth is once small enough.
 */
async function growthOf(read: Reader, piece: string): Promise<{ long: number; short: number }> {
  const text = piece.repeat(Math.ceil((SHORT * TIMES) / piece.length))
  let [long, short] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    long = Math.min(long, await workOf(read, text))
    if (long < LEAST_WORK) return { long: 1, short: 1 }
    short = Math.max(LEAST_WORK / 16, Math.min(short, await workOf(read, text.slice(0, SHORT))))
    if (long / short <= MOST_GROWTH) break
  }
  return { long, short }
}

async function workOf(read: Reader, text: string): Promise<number> {
  const before = process.cpuUsage()
  try {
    await read(text)
  } catch {
    // A refusal is an answer too; only the work counts.
  }
  const { user, system } = process.cpuUsage(before)
  return user + system
}
