import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { useChat } from '../chat-context.js'
import { Icon } from '../shared/icons.js'
import { type ModelLine, modelLines } from '../state/model-lines.js'

/** Which model answers next: a list that can be searched, those that can answer first. */
export function ModelPicker() {
  const { models, model, info, setModel } = useChat()
  const [isOpen, setOpen] = useState(false)
  const frame = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const selected = model ?? info.model
  useEffect(() => {
    if (!isOpen) return
    const onPointer = (event: PointerEvent) => {
      if (event.target instanceof Node && !frame.current?.contains(event.target)) setOpen(false)
    }
    document.addEventListener('pointerdown', onPointer)
    return () => document.removeEventListener('pointerdown', onPointer)
  }, [isOpen])
  if (models.length === 0) return null
  const shown = selected.slice(selected.indexOf('/') + 1) || 'The agent’s own model'
  const close = () => {
    setOpen(false)
    button.current?.focus()
  }
  return (
    <div ref={frame} className="model-picker">
      <button
        ref={button}
        type="button"
        className="model-button"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        aria-label={`Model: ${shown}`}
        title={selected}
        data-model={selected}
        onClick={() => setOpen(!isOpen)}
      >
        <span>{shown}</span>
        <Icon name="chevron" size={12} />
      </button>
      {isOpen ? (
        <ModelList
          selected={selected}
          onClose={close}
          onChoose={reference => {
            setModel(reference)
            close()
          }}
        />
      ) : null}
    </div>
  )
}

interface ModelListProps {
  selected: string
  onChoose: (reference: string) => void
  onClose: () => void
}

function ModelList({ selected, onChoose, onClose }: ModelListProps) {
  const { models } = useChat()
  const [text, setText] = useState('')
  const listId = useId()
  const lines = modelLines(models, text)
  const usable = lines.filter(({ reference }) => reference !== undefined)
  const [at, setAt] = useState(() =>
    Math.max(
      0,
      usable.findIndex(({ reference }) => reference === selected),
    ),
  )
  const active = usable[Math.min(at, usable.length - 1)]
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' || event.key === 'Tab') {
      event.preventDefault()
      event.stopPropagation()
      onClose()
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      const step = event.key === 'ArrowDown' ? 1 : -1
      setAt((Math.min(at, usable.length - 1) + step + usable.length) % Math.max(1, usable.length))
    } else if (event.key === 'Enter') {
      event.preventDefault()
      if (active?.reference !== undefined) onChoose(active.reference)
    }
  }
  return (
    <div className="model-list" role="dialog" aria-label="Choose a model">
      <label className="search-field">
        <Icon name="search" />
        <input
          // biome-ignore lint/a11y/noAutofocus: it opens on request, and typing is what it is for.
          autoFocus
          role="combobox"
          aria-label="Search models"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={active ? `${listId}-${active.key}` : undefined}
          placeholder="Search models"
          value={text}
          onKeyDown={onKeyDown}
          onChange={event => {
            setText(event.target.value)
            setAt(0)
          }}
        />
      </label>
      <div id={listId} role="listbox" aria-label="Models">
        {lines.map(line => (
          <ModelOption
            key={line.key}
            id={`${listId}-${line.key}`}
            line={line}
            isActive={line === active}
            isSelected={line.reference === selected}
            onChoose={onChoose}
          />
        ))}
      </div>
      {lines.length === 0 ? <p className="list-note">No model is named “{text}”.</p> : null}
    </div>
  )
}

interface ModelOptionProps {
  id: string
  line: ModelLine
  isActive: boolean
  isSelected: boolean
  onChoose: (reference: string) => void
}

function ModelOption({ id, line, isActive, isSelected, onChoose }: ModelOptionProps) {
  const option = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (isActive) option.current?.scrollIntoView({ block: 'nearest' })
  }, [isActive])
  const { reference, name, provider, facts } = line
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys of the list.
    // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field; it names the active option.
    <div
      ref={option}
      id={id}
      role="option"
      aria-selected={isSelected}
      aria-disabled={reference === undefined}
      data-active={isActive || undefined}
      onClick={() => reference !== undefined && onChoose(reference)}
    >
      <span className="model-name">
        {name}
        <small>{provider}</small>
      </span>
      <span className="model-facts">{facts}</span>
    </div>
  )
}
