import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createRuntime } from '../../src/runtime/runtime.js'
import { openStore } from '../../src/store/open-store.js'
import { ScriptedProvider } from '../../src/testing/scripted-provider.js'
import { runScript } from '../support/child.js'
import { createDatabase } from '../support/postgres.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { LONG } from '../support/tiers.js'

const DATABASES = [
  {
    name: 'SQLite',
    open: async () => ({ url: `sqlite:${join(await temporaryFolder(), 'many.db')}`, drop: async () => {} }),
  },
  { name: 'PostgreSQL', open: createDatabase },
] as const

/** Half of the runs in each of two processes; each session gets as many. */
async function expectWholeTurns(
  { open }: (typeof DATABASES)[number],
  { runs, sessions }: { runs: number; sessions: number },
): Promise<void> {
  const database = await open()
  const children = ['first', 'second'].map(name =>
    runScript('run-many.ts', [database.url, name, String(runs / 2), String(sessions)]),
  )
  for (const child of children) {
    expect((await child.ended).code, child.errors()).toBe(0)
    expect(child.lines).toEqual(['all well'])
  }
  const store = await openStore(database.url)
  for (let index = 0; index < sessions; index++) {
    const messages = await store.readMessages({ appName: 'lango', userId: 'user', sessionId: `s${index}` })
    expect(messages.map(message => message.seq)).toEqual(messages.map((_, place) => place + 1))
    const turn = ['user', 'assistant', 'tool', 'assistant']
    const turns = Array.from({ length: runs / sessions }, () => turn)
    expect(messages.map(message => message.role)).toEqual(turns.flat())
    for (let at = 0; at < messages.length; at += 4) {
      const [question, call, result, answer] = messages.slice(at, at + 4)
      expect(result?.toolCalls?.[0]?.id).toBe(call?.toolCalls?.[0]?.id)
      expect(call?.toolCalls?.[0]?.input).toContain(question?.content.split(' ')[0])
      expect(answer?.content).toBe('Found.')
      expect(new Set([question, call, result, answer].map(message => message?.invocationId)).size).toBe(1)
    }
  }
  await store.close()
  await database.drop()
}

test('12 runs over 3 sessions in 2 processes on SQLite leave whole turns in sequence', () =>
  expectWholeTurns(DATABASES[0], { runs: 12, sessions: 3 }))

test.each(DATABASES)(
  '100 runs over 10 sessions in 2 processes on $name leave whole turns in sequence',
  { ...LONG, timeout: 180_000 },
  database => expectWholeTurns(database, { runs: 100, sessions: 10 }),
)

test('a process follows a run of another process to its end, although nothing else keeps it alive', async () => {
  const store = `sqlite:${join(await temporaryFolder(), 'followed.db')}`
  let answer = () => {}
  const held = new Promise<void>(resolve => {
    answer = resolve
  })
  const provider = new ScriptedProvider(
    async () => {
      await held
      return { text: 'Found.' }
    },
    { id: 'play' },
  )
  const runtime = await createRuntime({
    store,
    providers: { play: provider },
    agent: { name: 'root', model: 'play/m' },
  })
  onTestFinished(() => runtime.close())
  const { runId } = await runtime.start({ sessionId: 's', text: 'Go.' })
  const child = runScript('follow-run.ts', [store, runId])
  await child.untilLines(1)
  answer()
  expect((await child.ended).code, child.errors()).toBe(0)
  expect(child.lines.at(-1)).toBe('run-finish')
})
