// What every lane runs: a session with a tool, and what the store has of it afterwards.
//
//   program.mjs run STORE MODEL-SERVER    runs the session, and prints what came of it
//   program.mjs read STORE                prints the stored session
//
// No top-level await, which CommonJS has not.
import { createRuntime, defineTool } from 'lango'
import { z } from 'zod'

async function main([verb, store, baseUrl = 'http://127.0.0.1:1']) {
  let calls = 0
  const look = defineTool({
    name: 'look',
    description: 'Looks at one place in the house.',
    parameters: z.object({ place: z.string() }),
    effect: 'read',
    execute: ({ place }) => {
      calls += 1
      return { place, found: 'a key' }
    },
  })
  const runtime = await createRuntime({
    app: 'lanes',
    store,
    providers: { strict: { type: 'gemini', baseUrl, apiKey: 'none' } },
    agent: { name: 'agent', model: 'strict/gemini-3-pro', instruction: 'You know the house.', tools: [look] },
  })
  const key = { userId: 'ann', sessionId: 'one' }
  const ran = verb === 'run' ? await runtime.runAndCollect({ ...key, text: 'Where is the key?' }) : undefined
  const messages = await runtime.messages({ appName: 'lanes', ...key })
  await runtime.close()
  const answer = ran && { text: ran.text, finishReason: ran.finishReason }
  console.log(JSON.stringify({ calls, answer, messages }))
}

main(process.argv.slice(2)).catch(error => {
  console.error(error)
  process.exitCode = 1
})
