/** Writes a session to a file: as `lango sessions import` reads it, or as a text for people. */
import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { AgentError } from '../../errors.js'
import { headerLine, messageLine } from '../../formats/session-lines.js'
import type { SessionKey, StoredMessage } from '../../session/message.js'
import type { SessionStore } from '../../session/session-store.js'
import type { ChatItemBody } from './chat-item.js'
import { formatArguments, formatResult } from './format.js'
import { itemsOf } from './open-session.js'

const PAGE = 1_000

/** Writes the session and returns where, and how many messages. A file that is there is not overwritten. */
export async function exportSession(
  store: SessionStore,
  key: SessionKey,
  file: string,
): Promise<{ path: string; messages: number }> {
  const path = resolve(file)
  const session = await store.loadSession(key, { budgetTokens: 'off', maxMessages: 1 })
  if (!session) throw new AgentError('session-not-found', `There is no session "${key.sessionId}" any more.`)
  const isText = path.endsWith('.md')
  const handle = await openNew(path)
  try {
    if (!isText) await handle.appendFile(headerLine(session))
    let messages = 0
    while (messages < session.totalMessages) {
      const page = await store.readMessages(key, {
        afterSeq: messages,
        beforeSeq: session.totalMessages + 1,
        limit: PAGE,
      })
      if (page.length === 0) break
      await handle.appendFile(isText ? markdownOf(page) : page.map(messageLine).join(''))
      messages = page.at(-1)?.seq ?? session.totalMessages
    }
    return { path, messages }
  } finally {
    await handle.close()
  }
}

async function openNew(path: string) {
  try {
    return await open(path, 'wx', 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why =
      code === 'EEXIST'
        ? 'there is a file of that name already'
        : code === 'ENOENT'
          ? 'its folder does not exist'
          : (code ?? 'it cannot be opened')
    throw new AgentError('invalid-argument', `Cannot write ${path}: ${why}. Name another file.`, {
      cause: error,
    })
  }
}

function markdownOf(messages: readonly StoredMessage[]): string {
  return itemsOf(messages)
    .map(item => `${markdownItem(item)}\n\n`)
    .join('')
}

function markdownItem(item: ChatItemBody): string {
  switch (item.kind) {
    case 'user':
      return `**You:** ${item.text}`
    case 'answer':
      return `**${item.author || 'Assistant'}:** ${item.text}`
    case 'reasoning':
      return item.text.replace(/^/gm, '> ')
    case 'tool':
      return `- \`${item.name}(${formatArguments(item.args)})\` → ${formatResult(item.result ?? '')}`
    case 'notice':
      return `_${item.text}_`
    case 'panel':
      return item.lines.join('\n')
  }
}
