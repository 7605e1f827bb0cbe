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

/**
 * Asks a question again in the same chat: the answer is written in a copy that ends before the question, and the copy
 * becomes the listed variant of the chat once its run is stored. When it is refused, the copy is deleted again.
 */
export async function answerAgain(
  chat: ChatContextValue,
  message: { seq: number; text: string; media: readonly MediaPart[] },
): Promise<void> {
  const { client, thread, variants, sessions, options } = chat
  const { sessionId } = thread.state.get()
  if (sessionId === undefined) return
  const copy = await client.fork(sessionId, { throughSeq: message.seq - 1 }).catch((error: unknown) => {
    thread.showError(error)
  })
  if (!copy) return
  chat.openSession(copy.sessionId)
  await thread.open(copy.sessionId)
  const isSent = await thread.send({
    text: message.text,
    files: filesOf(message.media),
    options,
    onStarted: () => variants.show(copy.sessionId, sessionId),
  })
  if (isSent) {
    await variants.read(copy.sessionId)
    return
  }
  const { problem } = thread.state.get()
  chat.openSession(sessionId)
  await thread.open(sessionId)
  if (problem) thread.showProblem(problem.code, problem.message)
  await sessions.delete(copy.sessionId)
}

/** Attachments that are kept in the message itself; those at an address cannot be sent again. */
export function filesOf(media: readonly MediaPart[]): AttachedFile[] {
  return media.flatMap(({ data, mimeType, name }) =>
    data === undefined ? [] : [{ mimeType, data, ...(name === undefined ? {} : { name }) }],
  )
}
