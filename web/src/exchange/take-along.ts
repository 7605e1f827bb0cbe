/** A chat as a file: everything as lines of JSON, or for reading, as Markdown or as a page. Loaded when it is asked for. */
import type { LangoClient } from '../../../src/client/client.js'
import { fromMessages } from '../../../src/transcript/from-messages.js'
import type { TranscriptItem } from '../../../src/transcript/item.js'
import { toMarkdown } from '../../../src/transcript/to-markdown.js'
import { downloadText } from '../shared/download.js'
import type { ChatMessage } from '../state/api.js'
import { toPage } from './to-page.js'

export type TakenAs = 'jsonl' | 'md' | 'html'

/** Hands a chat to the reader as a file. */
export async function takeAlong(
  client: LangoClient,
  chat: { sessionId: string; title: string; variant?: string | undefined },
  as: TakenAs,
): Promise<void> {
  const { title, variant } = chat
  const name = `${fileName(title, variant)}.${as}`
  if (as === 'jsonl')
    return downloadText(name, await client.exportSession(chat.sessionId), 'application/x-ndjson')
  const items = await allItems(client, chat.sessionId)
  const note = variant === undefined ? '' : `*${variant}*\n\n`
  if (as === 'md') downloadText(name, `# ${title}\n\n${note}${toMarkdown(items)}`, 'text/markdown')
  else downloadText(name, toPage(title, items, variant), 'text/html')
}

const PAGE_SIZE = 500
/** Half a million messages are no chat to read. */
const MOST_PAGES = 1000

async function allItems(client: LangoClient, sessionId: string): Promise<TranscriptItem[]> {
  const messages: ChatMessage[] = []
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const next = await client.messages(sessionId, { afterSeq: messages.at(-1)?.seq ?? 0, limit: PAGE_SIZE })
    messages.push(...next.messages)
    if (next.messages.length < PAGE_SIZE) break
  }
  return fromMessages(messages)
}

/** Letters and digits of any script; what file systems refuse is left out. */
export function fileName(title: string, variant?: string): string {
  const name = (variant === undefined ? title : `${title} ${variant}`)
    .normalize('NFC')
    .replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, '-')
    .replaceAll(/^-|-$/g, '')
  return [...name].slice(0, 60).join('') || 'chat'
}
