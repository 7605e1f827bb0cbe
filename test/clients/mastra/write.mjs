// Plays scenes with Mastra on Node 22 or later, each against its own model; `play.ts` starts it:
//   node --import ./only-loopback.mjs write.mjs file:mastra.db < '[{ "scene": …, "url": "http://127.0.0.1:…", "model": … }]'
import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { LibSQLStore } from '@mastra/libsql'
import { Memory } from '@mastra/memory'
import { PostgresStore } from '@mastra/pg'
import { z } from 'zod'

const [, , place] = process.argv
let input = ''
for await (const chunk of process.stdin) input += chunk
const storage = place.startsWith('postgres')
  ? new PostgresStore({ id: 's', connectionString: place })
  : new LibSQLStore({ id: 's', url: place })
for (const { scene, url, model } of JSON.parse(input)) await play(scene, { id: model, url, apiKey: 'none' })
// Mastra stores what is left of an aborted turn after its stream has ended.
await new Promise(resolve => setTimeout(resolve, 300))
process.exit(0)

async function behave(behaviour) {
  if ('returns' in behaviour) return behaviour.returns
  if ('picture' in behaviour) return { note: 'the screen', png: behaviour.picture }
  if ('fails' in behaviour) throw new Error(behaviour.fails)
  // The program is killed while the tool works.
  process.exit(9)
}

async function play(scene, model) {
  const tools = Object.fromEntries(
    Object.entries(scene.tools ?? {}).map(([id, behaviour]) => [
      id,
      createTool({
        id,
        description: id,
        inputSchema: z.looseObject({}),
        execute: () => behave(behaviour),
        ...(scene.approval ? { requireApproval: true } : {}),
      }),
    ]),
  )
  const clerk = new Agent({
    id: 'clerk',
    name: 'Clerk',
    instructions: scene.system ?? 'Be brief.',
    model,
    memory: new Memory({ storage, options: { lastMessages: 40 } }),
    tools,
  })

  // A run that waits for a person is kept in the storage of the whole.
  const agent = new Mastra({ agents: { clerk }, storage, logger: false }).getAgent('clerk')

  const memory = { thread: scene.name, resource: 'ann' }
  for (const { user, picture, pdf } of scene.turns) {
    const media = [
      ...(picture
        ? [{ type: 'image', image: `data:image/png;base64,${picture}`, mimeType: 'image/png' }]
        : []),
      ...(pdf
        ? [
            {
              type: 'file',
              data: `data:application/pdf;base64,${pdf}`,
              mediaType: 'application/pdf',
              filename: 'a.pdf',
            },
          ]
        : []),
    ]
    const message =
      media.length > 0 ? [{ role: 'user', content: [{ type: 'text', text: user }, ...media] }] : user
    const format = scene.structured
      ? { structuredOutput: { schema: z.object({ city: z.string(), degrees: z.number() }) } }
      : {}
    const stop = new AbortController()
    const stream = await agent.stream(message, { memory, abortSignal: stop.signal, ...format })
    let length = 0
    for await (const text of stream.textStream) {
      length += text.length
      if (scene.abortAfter !== undefined && length >= scene.abortAfter) stop.abort()
    }
    if (scene.approval === 'approved')
      await drain(await agent.approveToolCall({ runId: stream.runId, memory }))
    if (scene.approval === 'denied') await drain(await agent.declineToolCall({ runId: stream.runId, memory }))
  }
}

async function drain(stream) {
  for await (const _text of stream.textStream);
}
