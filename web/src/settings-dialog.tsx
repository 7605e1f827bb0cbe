import { useEffect, useRef, useState } from 'react'
import { useChat, useObserved } from './chat-context.js'
import { DEFAULT_MODEL_KEY } from './chosen-model.js'
import { LONGEST_ANSWER, type NumberRange, TEMPERATURE } from './chosen-thinking.js'
import { IconButton } from './shared/icon-button.js'
import { readStored, writeStored } from './shared/stored.js'
import { applyTheme, currentTheme, THEMES } from './shared/theme.js'

/** What this browser keeps: the look, and the model of new chats; and what the server was set up with. */
export function SettingsDialog({ onClose }: { onClose: () => void }) {
  const { info, models } = useChat()
  const dialog = useRef<HTMLDialogElement>(null)
  const [theme, setTheme] = useState(currentTheme)
  const [model, setModel] = useState(() => readStored(DEFAULT_MODEL_KEY) ?? '')
  useEffect(() => dialog.current?.showModal(), [])
  const usable = models.filter(({ keyPresent }) => keyPresent)
  return (
    <dialog ref={dialog} className="dialog settings" aria-labelledby="settings-title" onClose={onClose}>
      <header>
        <h2 id="settings-title">Settings</h2>
        <IconButton icon="close" label="Close" onClick={() => dialog.current?.close()} />
      </header>
      <label>
        <span>Theme</span>
        <select
          value={theme}
          onChange={event => {
            const next = THEMES.find(name => name === event.target.value) ?? 'system'
            setTheme(next)
            applyTheme(next)
          }}
        >
          {THEMES.map(name => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        <span>Model of new chats</span>
        <select
          value={model}
          onChange={event => {
            setModel(event.target.value)
            writeStored(DEFAULT_MODEL_KEY, event.target.value || undefined)
          }}
        >
          <option value="">as the server is set: {info.model || 'the agent’s own'}</option>
          {usable.map(({ reference }) => (
            <option key={reference}>{reference}</option>
          ))}
        </select>
      </label>
      <AnswerSettings />
      <dl>
        <MemoryFact onOpen={() => dialog.current?.close()} />
        <Fact name="Stored in" value={info.store} />
        <Fact name="Repair" value={info.repair} />
        <Fact name="Version" value={info.version} />
      </dl>
      <p className="settings-links">
        <a href="/docs">Documentation</a>
        <a href="/api/docs">API</a>
      </p>
    </dialog>
  )
}

/** Sent with every message of this browser; an empty field leaves it to the model. */
function AnswerSettings() {
  return (
    <>
      <NumberSetting range={TEMPERATURE} label="Temperature" hint="the model’s own (0 to 2)" />
      <NumberSetting range={LONGEST_ANSWER} label="Longest answer, in tokens" hint="the model’s own" />
    </>
  )
}

function NumberSetting({ range, label, hint }: { range: NumberRange; label: string; hint: string }) {
  const { name, least, most, step } = range
  const [text, setText] = useState(() => readStored(name) ?? '')
  return (
    <label>
      <span>{label}</span>
      <input
        type="number"
        min={least}
        max={most}
        step={step}
        placeholder={hint}
        value={text}
        onChange={event => {
          setText(event.target.value)
          writeStored(name, event.target.validity.valid ? event.target.value || undefined : undefined)
        }}
      />
    </label>
  )
}

/** Memory is the server's: here is whether it is on, what it holds of the open chat, and how to turn it on. */
function MemoryFact({ onOpen }: { onOpen: () => void }) {
  const { info, thread, openPanel } = useChat()
  const { sessionId, status } = useObserved(thread.state)
  const isThere = sessionId !== undefined && status === 'ready'
  return (
    <div>
      <dt>Memory</dt>
      <dd>
        {info.memory ? 'on' : 'off for this server'}
        {info.memory && isThere ? (
          <button
            type="button"
            className="settings-action"
            onClick={() => {
              onOpen()
              openPanel({ type: 'memory' })
            }}
          >
            What is noted about this chat
          </button>
        ) : null}
        {info.memory ? null : (
          <a className="settings-action" href="/docs/memory">
            How to turn it on
          </a>
        )}
      </dd>
    </div>
  )
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}
