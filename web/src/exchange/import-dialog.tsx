import { useEffect, useRef, useState } from 'react'
import { useChat } from '../chat-context.js'
import { IconButton } from '../shared/icon-button.js'
import { Icon } from '../shared/icons.js'
import type { ImportedFile } from '../state/api.js'
import { problemOf } from '../state/problem-of.js'

interface Chosen {
  name: string
  data: string
  format?: string
}

type State =
  | { step: 'choose'; problem?: string }
  | { step: 'busy' }
  | { step: 'format'; chosen: Chosen; problem: string; formats: readonly string[] }
  | { step: 'found'; chosen: Chosen; file: ImportedFile; problem?: string }

/** Brings chats of other programs along: a file is read first, and stored when it was looked at. */
export function ImportDialog({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const { client, sessions, openSession } = useChat()
  const [state, setState] = useState<State>({ step: 'choose' })
  useEffect(() => dialog.current?.showModal(), [])
  const look = async (chosen: Chosen) => {
    setState({ step: 'busy' })
    try {
      const file = await client.importFile({ ...chosen, dryRun: true })
      if (file.sessions.length === 0)
        setState({ step: 'choose', problem: `${chosen.name} contains no chat. Choose another file.` })
      else setState({ step: 'found', chosen, file })
    } catch (error) {
      const { message } = problemOf(error)
      const formats = candidatesOf(error)
      setState(
        formats.length > 0
          ? { step: 'format', chosen, problem: message, formats }
          : { step: 'choose', problem: message },
      )
    }
  }
  const store = async (chosen: Chosen, file: ImportedFile, authors: Record<string, string>) => {
    setState({ step: 'busy' })
    try {
      const stored = await client.importFile({ ...chosen, authors })
      await sessions.refresh()
      dialog.current?.close()
      openSession(stored.sessions[0]?.sessionId)
    } catch (error) {
      setState({ step: 'found', chosen, file, problem: problemOf(error).message })
    }
  }
  return (
    <dialog ref={dialog} className="dialog import-dialog" aria-labelledby="import-title" onClose={onClose}>
      <header>
        <h2 id="import-title">Import chats</h2>
        <IconButton icon="close" label="Close" onClick={() => dialog.current?.close()} />
      </header>
      {state.step === 'choose' ? (
        <FileField
          problem={state.problem}
          onFile={chosen => void look(chosen)}
          onRefused={problem => setState({ step: 'choose', problem })}
        />
      ) : null}
      {state.step === 'busy' ? <p role="status">Reading the file …</p> : null}
      {state.step === 'format' ? (
        <FormatChoice {...state} onFormat={format => void look({ ...state.chosen, format })} />
      ) : null}
      {state.step === 'found' ? (
        <FoundChats
          file={state.file}
          problem={state.problem}
          onStore={authors => void store(state.chosen, state.file, authors)}
          onBack={() => setState({ step: 'choose' })}
        />
      ) : null}
    </dialog>
  )
}

interface FormatChoiceProps {
  problem: string
  formats: readonly string[]
  onFormat: (format: string) => void
}

function FormatChoice({ problem, formats, onFormat }: FormatChoiceProps) {
  return (
    <>
      <p className="import-problem" role="alert">
        {problem}
      </p>
      <div className="import-actions">
        {formats.map(format => (
          <button key={format} type="button" className="button" onClick={() => onFormat(format)}>
            {format}
          </button>
        ))}
      </div>
    </>
  )
}

function candidatesOf(error: unknown): readonly string[] {
  const problem = typeof error === 'object' && error !== null ? Reflect.get(error, 'problem') : undefined
  const candidates = problem?.details?.candidates
  return Array.isArray(candidates) ? candidates.map(String) : []
}

interface FileFieldProps {
  problem: string | undefined
  onFile: (chosen: Chosen) => void
  onRefused: (problem: string) => void
}

/** Base64 is a third longer than the file. */
const BASE64 = 4 / 3

function FileField({ problem, onFile, onRefused }: FileFieldProps) {
  const { info } = useChat()
  const chooser = useRef<HTMLInputElement>(null)
  const take = async (file: File | undefined) => {
    if (!file) return
    if (file.size * BASE64 > info.maxBodyBytes - 10_000) {
      const most = Math.floor(info.maxBodyBytes / BASE64 / 1024 / 1024)
      return onRefused(
        `${file.name} is larger than the ${most} MB that this server takes. Import it where the server runs: lango sessions import ${file.name}`,
      )
    }
    onFile({ name: file.name, data: await base64Of(file) })
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button in it does the same for the keyboard.
    <div
      className="import-drop"
      onDragOver={event => event.preventDefault()}
      onDrop={event => {
        event.preventDefault()
        void take(event.dataTransfer.files[0])
      }}
    >
      <p>
        A file of Lango, ADK, AI SDK, LangChain, LangGraph, OpenAI Agents, Mastra, Claude Code, Codex or pi, a
        SQLite database of one of them, or the body of a request. It is read first; nothing is stored yet.
      </p>
      <button type="button" className="button primary" onClick={() => chooser.current?.click()}>
        <Icon name="clip" />
        <span>Choose a file</span>
      </button>
      <p className="hint">or drop it here</p>
      <input
        ref={chooser}
        type="file"
        hidden
        aria-label="A file with chats"
        onChange={event => {
          void take(event.target.files?.[0])
          event.target.value = ''
        }}
      />
      {problem === undefined ? null : (
        <p className="import-problem" role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}

async function base64Of(file: File): Promise<string> {
  const reader = new FileReader()
  return new Promise((resolve, reject) => {
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
}

interface FoundChatsProps {
  file: ImportedFile
  problem: string | undefined
  onStore: (authors: Record<string, string>) => void
  onBack: () => void
}

const SHOWN = 8

function FoundChats({ file, problem, onStore, onBack }: FoundChatsProps) {
  const { sessions, agents, unknownAgents } = file
  const [authors, setAuthors] = useState<Record<string, string>>({})
  const notes = [...new Set(sessions.flatMap(session => session.notes))]
  const leftOut = [...new Set(sessions.flatMap(session => session.leftOut))]
  return (
    <>
      <ul className="import-list">
        {sessions.slice(0, SHOWN).map(({ sessionId, title, messages }) => (
          <li key={sessionId}>
            <span dir="auto">{title ?? sessionId}</span>
            <small>{messages === 1 ? '1 message' : `${messages.toLocaleString('en-US')} messages`}</small>
          </li>
        ))}
      </ul>
      {sessions.length > SHOWN ? <p className="hint">… and {sessions.length - SHOWN} more</p> : null}
      {unknownAgents.map(name => (
        <label key={name} className="import-author">
          <span>
            The answers of <strong>{name}</strong> are from an agent that this server does not have. The model
            receives them as text, tool calls included. To keep the calls, store them as answers of
          </span>
          <select
            value={authors[name] ?? ''}
            onChange={event => setAuthors({ ...authors, [name]: event.target.value })}
          >
            <option value="">no agent: keep the name</option>
            {agents.map(agent => (
              <option key={agent}>{agent}</option>
            ))}
          </select>
        </label>
      ))}
      {notes.map(text => (
        <p key={text} className="hint">
          {text}
        </p>
      ))}
      {leftOut.length > 0 ? (
        <details>
          <summary>{leftOut.length} fields of the file are not stored</summary>
          <p>{leftOut.join(', ')}</p>
        </details>
      ) : null}
      {problem === undefined ? null : (
        <p className="import-problem" role="alert">
          {problem}
        </p>
      )}
      <div className="import-actions">
        <button type="button" className="button" onClick={onBack}>
          Another file
        </button>
        <button
          type="button"
          className="button primary"
          onClick={() =>
            onStore(Object.fromEntries(Object.entries(authors).filter(([, agent]) => agent !== '')))
          }
        >
          {sessions.length === 1 ? 'Import the chat' : `Import ${sessions.length} chats`}
        </button>
      </div>
    </>
  )
}
