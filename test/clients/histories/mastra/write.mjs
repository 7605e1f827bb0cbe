// Writes a database with @mastra/core 1.71.0, @mastra/memory 1.31.0 and @mastra/libsql 1.23.1 on Node 22:
//   node write.mjs mastra.db http://127.0.0.1:PORT/v1
import { rmSync } from 'node:fs'
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { LibSQLStore } from '@mastra/libsql'
import { Memory } from '@mastra/memory'
import { z } from 'zod'

const [, , file, url] = process.argv
for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true })

const storage = new LibSQLStore({ id: 's', url: `file:${file}` })
const tool = (id, inputSchema, execute) => createTool({ id, description: id, inputSchema, execute })
const agent = new Agent({
  id: 'clerk',
  name: 'Clerk',
  instructions: 'Be brief.',
  model: { id: 'custom/gpt-4.1', url, apiKey: 'none' },
  memory: new Memory({ storage, options: { lastMessages: 20 } }),
  tools: {
    get_weather: tool('get_weather', z.object({ city: z.string() }), async () => ({
      sky: 'rain',
      degrees: 12,
    })),
    save: tool('save', z.object({}), async () => {
      throw new Error('disk full: /data')
    }),
  },
})

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const picture = { type: 'image', image: `data:image/png;base64,${PIXEL}`, mimeType: 'image/png' }
const say = (thread, message) => agent.generate(message, { memory: { thread, resource: 'ann' } })

await say('plain', 'Is it raining?')
await say('turns', 'Question 1?')
await say('turns', 'Question 2?')
await say('tools', 'weather please')
await say('fails', 'save it')
await say('picture', [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, picture] }])
await say('scripts', 'Grüße, 你好, 👩‍👩‍👧‍👦, "quotes" \\ and\ttabs')
process.exit(0)
