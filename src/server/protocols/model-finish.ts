import type { SessionKey } from '../../session/message.js'
import type { ServerContext } from '../server-context.js'

/** Why the model ended its last answer, where clients have a word for it. */
export type ModelFinish = 'stop' | 'length' | 'content-filter'

/** A run that ended well may still end with an answer that the model had to cut: the stored answer says so. */
export async function modelFinish({ runtime }: ServerContext, key: SessionKey): Promise<ModelFinish> {
  const [last] = await runtime.store.readMessages(key, { beforeSeq: Number.MAX_SAFE_INTEGER, limit: 1 })
  const reason = last?.extra?.finishReason
  if (reason === 'MAX_TOKENS') return 'length'
  return typeof reason === 'string' && FILTERED.has(reason) ? 'content-filter' : 'stop'
}

const FILTERED: ReadonlySet<string> = new Set([
  'SAFETY',
  'RECITATION',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
])
