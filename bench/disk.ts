/**
 * The disk that 200 turns with a tool take: the file of the store, with all that the inspector shows, by tables. The
 * provider is a real one over HTTP, so that answers come in pieces and every request is kept.
 *
 *     npm run bench -- disk [--json]
 */
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { z } from 'zod'
import { createRuntime } from '../src/runtime/runtime.js'
import { startStrictProvider } from '../src/testing/start-strict-provider.js'
import { defineTool } from '../src/tool.js'
import { Report } from './support/report.js'

const TURNS = Number(process.env.LANGO_BENCH_TURNS ?? 200)
const MEGABYTE = 1024 * 1024
const LIMIT_MB = 4

const DRAWER = 'stamps, envelopes, a key on a red ribbon, four candles and the manual of the boiler'
const ANSWER = `It is in the second drawer from the top, behind the envelopes, with ${DRAWER}.`.split(
  /(?<= )/,
)

const look = defineTool({
  name: 'look',
  description: 'Looks at one place in the house and lists what is there.',
  parameters: z.object({ place: z.string().describe('Which place, as a person would name it.') }),
  effect: 'read',
  execute: ({ place }) => ({ place, found: Array.from({ length: 8 }, () => DRAWER) }),
})

const report = new Report('disk')
const folder = await mkdtemp(join(tmpdir(), 'lango-bench-'))
const server = await startStrictProvider({
  profile: 'openai-chat',
  script: (_request, index) =>
    index % 2 === 0
      ? { toolCalls: [{ name: 'look', args: { place: 'the second drawer from the top' } }] }
      : { deltas: ANSWER },
})
try {
  await fill(`${folder}/lango.db`)
  await measure(`${folder}/lango.db`)
} finally {
  await server.close()
  await rm(folder, { recursive: true, force: true })
}
report.finish()

async function fill(file: string): Promise<void> {
  const runtime = await createRuntime({
    store: `sqlite:${file}`,
    providers: { strict: { type: 'openai-compatible', baseUrl: server.baseUrl, apiKey: 'none' } },
    agent: { name: 'agent', model: 'strict/model', instruction: 'You know the house.', tools: [look] },
  })
  for (let turn = 1; turn <= TURNS; turn += 1) {
    const text = `Where is the key that I put away ${turn} weeks ago?`
    const { finishReason } = await runtime.runAndCollect({ userId: 'u', sessionId: 's', text })
    if (finishReason !== 'stop') throw new Error(`turn ${turn} ended with ${finishReason}`)
    if (turn % 50 === 0) report.progress(`${turn} turns …`)
  }
  await runtime.close()
}

async function measure(file: string): Promise<void> {
  const { size } = await stat(file)
  report.figure(`${TURNS} turns with a tool, the whole file`, 'MB', size / MEGABYTE, LIMIT_MB)
  const database = new DatabaseSync(file, { readOnly: true })
  // A table with its indexes.
  const query = `SELECT m.tbl_name AS name, sum(s.pgsize) AS size FROM dbstat s JOIN sqlite_master m ON m.name = s.name
    GROUP BY m.tbl_name HAVING size > 40000 ORDER BY size DESC`
  for (const row of database.prepare(query).all()) {
    report.figure(`of it ${row.name}`, 'MB', Number(row.size) / MEGABYTE)
  }
  database.close()
}
