import { memo } from 'react'
import type { Entry } from '../state/entry.js'
import { AnswerFooter } from './answer-footer.js'
import { ErrorCard } from './error-card.js'
import { MarkLine, QueuedLine } from './mark-line.js'
import { Markdown } from './markdown.js'
import { Media } from './media.js'
import { Reasoning } from './reasoning.js'
import { Sources } from './sources.js'
import { ToolCard } from './tool-card.js'
import { UserMessage } from './user-message.js'

interface EntryViewProps {
  entry: Entry
  /** Named when it is not the agent that the reader talks to, or not the one that wrote the entry before. */
  author?: string | undefined
  /** It stands at the end of the chat. */
  isLast: boolean
}

/** One entry of the chat. */
export const EntryView = memo(function EntryView({ entry, author, isLast }: EntryViewProps) {
  return (
    <>
      {author ? <p className="author">{author}</p> : null}
      <Body entry={entry} isLast={isLast} />
    </>
  )
})

function Body({ entry, isLast }: { entry: Entry; isLast: boolean }) {
  switch (entry.kind) {
    case 'user':
      return <UserMessage entry={entry} />
    case 'text':
      return <Markdown text={entry.text} isStreaming={entry.streaming === true} />
    case 'reasoning':
      return <Reasoning entry={entry} />
    case 'tool':
      return <ToolCard entry={entry} />
    case 'media':
      return <Media media={entry.media} />
    case 'sources':
      return <Sources entry={entry} />
    case 'mark':
      return <MarkLine entry={entry} />
    case 'queued':
      return <QueuedLine entry={entry} />
    case 'error':
      return <ErrorCard entry={entry} isLast={isLast} />
    case 'footer':
      return <AnswerFooter entry={entry} isLast={isLast} />
    case 'working':
      return (
        <p className="working">
          <span className="working-dots" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          {entry.label}
        </p>
      )
    default:
      return entry satisfies never
  }
}
