import { spawn } from 'node:child_process'
import type { Report } from '../support/report.js'

const WRITERS = 8

/** Eight processes write to one database, each to a session of its own. */
export async function benchWriters(report: Report, folder: string): Promise<void> {
  report.progress(`${WRITERS} writing processes …`)
  const ours = await runWriters('lango', `sqlite:${folder}/writers.db`, 200)
  const adk = await runWriters('adk', `sqlite://${folder}/writers-adk.db`, 25)
  report.atLeast('8 writing processes against ADK, per append', 'µs', ours.microseconds, adk.microseconds)
  report.progress(
    `  appends refused: Lango ${ours.failed} of ${ours.asked}, ADK ${adk.failed} of ${adk.asked}`,
  )
}

interface Outcome {
  microseconds: number
  failed: number
  asked: number
}

async function runWriters(kind: 'lango' | 'adk', url: string, appends: number): Promise<Outcome> {
  const results = await Promise.all(
    Array.from({ length: WRITERS }, (_, index) => runWriter([kind, url, `w${index}`, String(appends)])),
  )
  const done = results.reduce((sum, result) => sum + result.done, 0)
  const failed = results.reduce((sum, result) => sum + result.failed, 0)
  // The writers overlap: the span from the first start to the last end, shared by all appends that worked.
  const span =
    Math.max(...results.map(result => result.ended)) - Math.min(...results.map(result => result.started))
  return { microseconds: (span * 1000) / Math.max(1, done), failed, asked: WRITERS * appends }
}

interface WriterResult {
  started: number
  ended: number
  done: number
  failed: number
}

function runWriter(args: string[]): Promise<WriterResult> {
  const program = new URL('writer.ts', import.meta.url).pathname
  const child = spawn('node', [...process.execArgv, program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', chunk => {
    output += chunk
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => {
      try {
        resolve(JSON.parse(output.trim().split('\n').at(-1) ?? '') as WriterResult)
      } catch (error) {
        reject(error)
      }
    })
  })
}
