import type { ChatContextValue } from '../chat-context.js'
import type { AttachedFile, MediaPart } from '../state/api.js'

/**
 * Sends a message again from where it stood: a fork that ends before it, then a run in the fork. The session
 * itself is not changed, because stored messages never are.
 */
export async function resend(
  chat: ChatContextValue,
  message: { seq: number; text: string; media: readonly MediaPart[] },
): Promise<void> {
  const forked = await chat.thread.fork(message.seq - 1)
  if (forked === undefined) return
  chat.openSession(forked)
  await chat.thread.open(forked)
  await chat.thread.send({ text: message.text, files: filesOf(message.media), options: chat.options })
}

/** Attachments that are kept in the message itself; those at an address cannot be sent again. */
export function filesOf(media: readonly MediaPart[]): AttachedFile[] {
  return media.flatMap(({ data, mimeType, name }) =>
    data === undefined ? [] : [{ mimeType, data, ...(name === undefined ? {} : { name }) }],
  )
}
