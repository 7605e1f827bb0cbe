import { textOf } from '../../../src/transcript/from-messages.js'
import type { FooterItem } from '../../../src/transcript/item.js'
import { useChat } from '../chat-context.js'
import { CopyButton } from '../shared/copy-button.js'
import { IconButton } from '../shared/icon-button.js'
import { formatCallCost, formatTokens } from '../state/format.js'
import { askAgain } from './resend.js'

/** What can be done with an answer, and what it cost. */
export function AnswerFooter({ entry, isLast }: { entry: FooterItem; isLast: boolean }) {
  const chat = useChat()
  const again = () => {
    const question = chat.thread.state.get().messages.find(({ seq }) => seq === entry.userSeq)
    if (!question) return
    const media = question.parts.filter(part => part.type === 'media')
    void askAgain(chat, { seq: question.seq, text: textOf(question.parts), media })
  }
  const fork = async () => {
    const forked = await chat.thread.fork(entry.seq)
    if (forked !== undefined) chat.openSession(forked)
  }
  const facts = [
    // Which provider it came through is in the tooltip: a phone has no room for both.
    entry.model?.slice(entry.model.indexOf('/') + 1),
    entry.totalTokens > 0 ? `${formatTokens(entry.totalTokens)} tokens` : undefined,
    entry.cost === undefined ? undefined : formatCallCost(entry.cost),
  ]
    .filter(Boolean)
    .join(' · ')
  return (
    <footer className="answer-footer" data-last={isLast || undefined}>
      {facts ? (
        <p className="answer-facts" title={entry.model}>
          {facts}
        </p>
      ) : null}
      <div className="row-actions">
        {entry.text ? <CopyButton text={entry.text} isIcon label="Copy the answer" /> : null}
        {entry.userSeq !== undefined ? (
          <IconButton icon="retry" label="Answer again" onClick={again} />
        ) : null}
        <IconButton icon="fork" label="Fork the chat here" onClick={() => void fork()} />
        <IconButton
          icon="lens"
          label="Inspect what the model was sent"
          onClick={() => chat.inspectMessage(entry.seq)}
        />
      </div>
    </footer>
  )
}
