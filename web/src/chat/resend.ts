import type { ChatContextValue } from '../chat-context.js'
import type { AttachedFile, MediaPart } from '../state/api.js'
import { offerDraft } from './use-draft.js'

/** A question that is asked again. */
export interface AskedAgain {
  seq: number
  text: string
  media: readonly MediaPart[]
  /** The text is not the one that was asked before: it is kept as a draft when it is refused. */
  isEdited?: boolean
}

/**
 * Asks a question again in the same chat, as it is or edited: the answer is written in a copy that ends before the
 * question, and the copy becomes the listed variant of the chat once its run is stored. The version before is not changed,
 * because stored messages never are, and stays reachable. When the question is refused, the copy is deleted again.
 */
export async function askAgain(chat: ChatContextValue, message: AskedAgain): Promise<void> {
  const { client, thread, variants, sessions, options } = chat
  const { sessionId } = thread.state.get()
  if (sessionId === undefined) return
  const keepText = () => {
    if (message.isEdited) offerDraft(sessionId, message.text)
  }
  const copy = await client.fork(sessionId, { throughSeq: message.seq - 1 }).catch((error: unknown) => {
    thread.showError(error)
  })
  if (!copy) return keepText()
  chat.openSession(copy.sessionId)
  await thread.open(copy.sessionId)
  const isSent = await thread.send({
    text: message.text,
    files: filesOf(message.media),
    options,
    onStarted: async () => {
      const { title } = await variants.show(copy.sessionId, sessionId)
      if (title !== undefined) thread.renamed(copy.sessionId, title)
    },
  })
  if (isSent) {
    await variants.read(copy.sessionId)
    return
  }
  keepText()
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
