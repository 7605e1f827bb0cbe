import { useEffect, useRef, useState } from 'react'
import { EXPORT_FORMATS, EXPORT_FORMS, type ExportFormat } from '../../../src/formats/export-forms.js'
import { useChat } from '../chat-context.js'
import { downloadText } from '../shared/download.js'
import { IconButton } from '../shared/icon-button.js'
import { Icon } from '../shared/icons.js'
import { problemOf } from '../state/problem-of.js'

type State =
  | { step: 'choose' }
  | { step: 'busy'; format: ExportFormat }
  | { step: 'saved'; format: ExportFormat; lines: readonly string[] }
  | { step: 'failed'; problem: string }

/** Writes a chat for another framework, and names what that has no place for. */
export function ExportDialog({ name, sessionId, onClose }: ExportDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const { client } = useChat()
  const [state, setState] = useState<State>({ step: 'choose' })
  useEffect(() => dialog.current?.showModal(), [])
  const save = async (format: ExportFormat) => {
    setState({ step: 'busy', format })
    try {
      const { text, leftOut, notes } = await client.exportSessionAs(sessionId, format)
      downloadText(`${name}.${format}.json`, text, 'application/json')
      setState({ step: 'saved', format, lines: [...leftOut.map(field => `Left out: ${field}`), ...notes] })
    } catch (error) {
      setState({ step: 'failed', problem: problemOf(error).message })
    }
  }
  return (
    <dialog ref={dialog} className="dialog import-dialog" aria-labelledby="export-title" onClose={onClose}>
      <header>
        <h2 id="export-title">Export for another framework</h2>
        <IconButton icon="close" label="Close" onClick={() => dialog.current?.close()} />
      </header>
      <ul className="export-forms">
        {EXPORT_FORMATS.map(format => (
          <li key={format}>
            <button
              type="button"
              className="button"
              disabled={state.step === 'busy'}
              onClick={() => void save(format)}
            >
              <Icon name="down" />
              {EXPORT_FORMS[format]}
            </button>
          </li>
        ))}
      </ul>
      {state.step === 'failed' ? (
        <p className="import-problem" role="alert">
          {state.problem}
        </p>
      ) : (
        <div className="export-outcome" role="status">
          <Outcome state={state} />
        </div>
      )}
    </dialog>
  )
}

interface ExportDialogProps {
  /** Of the file, without its ending. */
  name: string
  sessionId: string
  onClose: () => void
}

function Outcome({ state }: { state: State }) {
  if (state.step === 'busy') return <p>Writing {EXPORT_FORMS[state.format]} …</p>
  if (state.step !== 'saved')
    return <p>The file is compared with the chat; what is left out is listed here.</p>
  if (state.lines.length === 0) return <p>Saved as {EXPORT_FORMS[state.format]}. Nothing is left out.</p>
  return (
    <>
      <p>Saved as {EXPORT_FORMS[state.format]}.</p>
      <ul>
        {state.lines.map(line => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </>
  )
}
