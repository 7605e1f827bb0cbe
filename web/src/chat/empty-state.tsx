import { useChat } from '../chat-context.js'
import { Logo } from '../shared/icons.js'
import { BrokenCards } from './gallery.js'

const EXAMPLES = [
  { title: 'What time is it?', text: 'Tell me the current time in "Asia/Tokyo".' },
  { title: 'Look around', text: 'List the files in the workspace.' },
  { title: 'Ask me first', text: 'Run the command "uname -a".' },
]

/** An empty chat: three things to ask with one click, and broken histories to see healed. */
export function EmptyState() {
  const { thread, info, options } = useChat()
  return (
    <div className="empty-state">
      <Logo size={52} />
      <h2>A history that cannot break</h2>
      <p>
        Chat with {info.agent} on any model, switch models in the middle, close the page in mid-answer:
        nothing is lost.
      </p>
      <div className="examples">
        {EXAMPLES.map(({ title, text }) => (
          <button key={title} type="button" onClick={() => void thread.send({ text, options })}>
            <strong className="example-title">{title}</strong>
            <span className="example-text">{text}</span>
          </button>
        ))}
      </div>
      <BrokenCards />
    </div>
  )
}
