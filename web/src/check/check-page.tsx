/** Paste yours: a history of any program, what providers reject in it and why, and the healed file. */
import { type DragEvent, useRef, useState } from 'react'
import { useChat } from '../chat-context.js'
import { IconButton } from '../shared/icon-button.js'
import { Icon } from '../shared/icons.js'
import type { CheckedText } from '../state/api.js'
import { problemOf } from '../state/problem-of.js'
import './check.css'
import { CheckResult } from './check-result.js'

interface CheckPageProps {
  isSidebarOpen: boolean
  onToggleSidebar: () => void
}

type Outcome =
  | { state: 'none' | 'busy' }
  | { state: 'failed'; message: string }
  | { state: 'done'; checked: CheckedText }

export function CheckPage({ isSidebarOpen, onToggleSidebar }: CheckPageProps) {
  const { client, info } = useChat()
  const [text, setText] = useState('')
  const [outcome, setOutcome] = useState<Outcome>({ state: 'none' })
  const check = async (given: string, format?: string) => {
    setOutcome({ state: 'busy' })
    try {
      const checked = await client.check({ text: given, ...(format === undefined ? {} : { format }) })
      setOutcome({ state: 'done', checked })
    } catch (error) {
      setOutcome({ state: 'failed', message: problemOf(error).message })
    }
  }
  const take = (given: string) => {
    setText(given)
    setOutcome({ state: 'none' })
  }
  return (
    <main className="chat check-page">
      <header className="chat-header">
        {isSidebarOpen ? null : <IconButton icon="panel" label="Show the chats" onClick={onToggleSidebar} />}
        <h1 className="chat-title">Check a history</h1>
      </header>
      <div className="check-scroll">
        <div className="check-column">
          <h2>Your history was refused?</h2>
          <p className="check-intro">
            Paste the body of the request, an export or a transcript: Gemini, OpenAI, Anthropic, ADK, AI SDK,
            LangChain, OpenAI Agents, Mastra, Claude Code, Codex or pi. You see what is wrong, what the
            provider says, and the healed file. Nothing is stored or sent on.
          </p>
          <HistoryField
            text={text}
            maxBytes={info.maxBodyBytes}
            isBusy={outcome.state === 'busy'}
            onText={take}
            onCheck={() => void check(text)}
            onRefused={message => setOutcome({ state: 'failed', message })}
          />
          {outcome.state === 'failed' ? (
            <p className="check-failed" role="alert">
              {outcome.message}
            </p>
          ) : null}
          {outcome.state === 'done' ? (
            <CheckResult checked={outcome.checked} onFormat={format => void check(text, format)} />
          ) : null}
        </div>
      </div>
    </main>
  )
}

interface HistoryFieldProps {
  text: string
  maxBytes: number
  isBusy: boolean
  onText: (text: string) => void
  onCheck: () => void
  onRefused: (message: string) => void
}

/** Where the history goes: typed, pasted, dropped, or from a file. */
function HistoryField({ text, maxBytes, isBusy, onText, onCheck, onRefused }: HistoryFieldProps) {
  const chooser = useRef<HTMLInputElement>(null)
  const read = async (file: File | undefined) => {
    if (!file) return
    if (file.size > maxBytes)
      onRefused(
        `${file.name} has ${megabytes(file.size)} MB, and this server takes ${megabytes(maxBytes)}. Check it where it is: lango lint ${file.name}`,
      )
    else onText(await file.text())
  }
  const onDrop = (event: DragEvent) => {
    event.preventDefault()
    void read(event.dataTransfer.files[0])
  }
  return (
    <form
      className="check-form"
      onSubmit={event => {
        event.preventDefault()
        onCheck()
      }}
      onDragOver={event => event.preventDefault()}
      onDrop={onDrop}
    >
      <textarea
        aria-label="History"
        placeholder={'{ "messages": [ … ] }'}
        spellCheck={false}
        rows={9}
        value={text}
        onChange={event => onText(event.target.value)}
        onKeyDown={event => {
          if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) onCheck()
        }}
      />
      <div className="check-actions">
        <button type="submit" className="button primary" disabled={isBusy || text.trim() === ''}>
          {isBusy ? 'Checking …' : 'Check it'}
        </button>
        <button type="button" className="button" onClick={() => chooser.current?.click()}>
          <Icon name="clip" />
          <span>Choose a file</span>
        </button>
        <button type="button" className="quiet-button" onClick={() => onText(EXAMPLE)}>
          Show me an example
        </button>
        <input
          ref={chooser}
          type="file"
          hidden
          aria-label="A file with a history"
          onChange={event => {
            void read(event.target.files?.[0])
            event.target.value = ''
          }}
        />
      </div>
    </form>
  )
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1024 / 102.4) / 10
}

/** A tool was killed before it answered, and the user went on. */
const EXAMPLE = JSON.stringify(
  {
    model: 'claude-sonnet-4-6',
    max_tokens: 1024,
    tools: [{ name: 'get_weather', description: 'The weather of a city', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: 'What is the weather in Oslo?' },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'toolu_01', name: 'get_weather', input: { city: 'Oslo' } }],
      },
      { role: 'user', content: 'Are you still there?' },
    ],
  },
  null,
  2,
)
