/**
 * Writes `mastra.db`: every scene is played by Mastra itself, in a process of its own, against a strict provider on
 * loopback. Mastra reports to its makers, so run it where only loopback can be reached:
 *
 *   node --import tsx test/clients/histories/mastra/play.ts FOLDER
 *
 * FOLDER has Mastra's packages (their versions are in `write.mjs`) and `node` 22.
 */
import { spawn } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { startStrictProvider } from '../../../../src/testing/start-strict-provider.js'
import type { StrictProfile } from '../../../../src/testing/strict/profile.js'
import { APPROVAL_SCENES, SCENES, type Scene } from '../support/scenes.js'

const [folder = '.'] = process.argv.slice(2)
const file = join(folder, 'mastra.db')
const writer = join(folder, 'write.mjs')
const KEPT = ['mastra_threads', 'mastra_messages', 'mastra_resources']

/** Mastra asks every model by Chat Completions; those that think are asked as DeepSeek. */
function profileOf({ turns }: Scene): StrictProfile {
  return turns.some(({ steps }) => steps.some(({ thinking }) => thinking)) ? 'deepseek-v4' : 'openai-chat'
}

async function play(scene: Scene): Promise<number | null> {
  const steps = scene.turns.flatMap(turn => turn.steps)
  const profile = profileOf(scene)
  const server = await startStrictProvider({
    profile,
    script: () => steps[server.requests.length - 1] ?? { text: 'There is no more.' },
  })
  const model = profile === 'deepseek-v4' ? 'custom/deepseek-v4-flash' : 'custom/gpt-4.1'
  const child = spawn(join(folder, 'node_modules/.bin/node'), [writer, file, server.baseUrl, model], {
    cwd: folder,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  child.stdin.end(JSON.stringify(scene))
  const code = await new Promise<number | null>(resolve => child.on('exit', resolve))
  if (server.violations.length > 0) console.error(scene.name, JSON.stringify(server.violations).slice(0, 300))
  await server.close()
  return code
}

for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
copyFileSync(new URL('write.mjs', import.meta.url), writer)
const scenes = [...SCENES, ...APPROVAL_SCENES].filter(
  ({ name, searches }) => !searches && name !== 'an output of 300 kB',
)
for (const scene of scenes) console.log(scene.name, await play(scene))
const database = new DatabaseSync(file)
const tables = database.prepare("select name from sqlite_master where type = 'table'").all()
for (const { name } of tables)
  if (!KEPT.includes(String(name)) && !/^sqlite_/.test(String(name))) database.exec(`drop table "${name}"`)
database.exec('pragma journal_mode = delete; vacuum')
database.close()
copyFileSync(file, new URL('mastra.db', import.meta.url))
