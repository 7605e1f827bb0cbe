import type { Hono } from 'hono'
import type { ServerContext, ServerEnv } from '../../server-context.js'
import { agentNames } from './completion-request.js'
import { UnknownModel } from './openai-error.js'

interface ModelLine {
  id: string
  object: 'model'
  created: number
  owned_by: string
}

/** `GET /v1/models`: the agent itself first, then every model that a key was found for. */
export function mountModels(app: Hono<ServerEnv>, context: ServerContext): void {
  app.get('/v1/models', async c => c.json({ object: 'list', data: await lines(context) }))
  app.get('/v1/models/:model{.+}', async c => {
    const id = c.req.param('model')
    const found = (await lines(context)).find(line => line.id === id)
    if (found) return c.json(found)
    throw new UnknownModel(id)
  })
}

async function lines({ runtime, info }: ServerContext): Promise<ModelLine[]> {
  const models = (await runtime.models()).filter(({ keyPresent }) => keyPresent)
  return [
    ...agentNames(info).map(id => line(id, 'lango')),
    ...models.map(({ reference, provider }) => line(reference, provider)),
  ]
}

function line(id: string, owner: string): ModelLine {
  return { id, object: 'model', created: 0, owned_by: owner }
}
