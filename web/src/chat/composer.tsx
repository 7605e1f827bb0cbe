import { type RefObject, useEffect, useRef, useState } from 'react'
import { useChat, useObserved } from '../chat-context.js'
import { IconButton } from '../shared/icon-button.js'
import { Icon } from '../shared/icons.js'
import { inlineFiles, LONGEST_PASTE } from '../state/inline-files.js'
import { Media } from './media.js'
import { ModelPicker } from './model-picker.js'
import { ThinkingPicker } from './thinking-picker.js'
import { type Attachments, useAttachments } from './use-attachments.js'
import { useDraft } from './use-draft.js'

interface ComposerProps {
  area: RefObject<HTMLTextAreaElement | null>
}

/** Where the reader writes. Enter sends, Shift+Enter breaks the line; while an answer is written it can be stopped. */
export function Composer({ area }: ComposerProps) {
  const { thread, info, options } = useChat()
  const { live, sessionId } = useObserved(thread.state)
  const [text, setText] = useDraft(sessionId)
  const attachments = useAttachments(sessionId, info.maxBodyBytes)
  const [isDropping, setDropping] = useState(false)
  useAutoHeight(area, text)
  const isEmpty = text.trim() === '' && attachments.files.length === 0
  const send = async () => {
    if (isEmpty || live) return
    const { files } = attachments
    setText('')
    attachments.replace([])
    const isAccepted = await thread.send({ ...inlineFiles(text.trim(), files), options })
    if (isAccepted) return
    setText(current => current || text)
    attachments.replace(files)
  }
  return (
    <form
      className="composer"
      aria-label="Message"
      data-dropping={isDropping || undefined}
      onSubmit={event => {
        event.preventDefault()
        void send()
      }}
      onDragOver={event => {
        event.preventDefault()
        setDropping(true)
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={event => {
        event.preventDefault()
        setDropping(false)
        void attachments.add(event.dataTransfer.files)
      }}
    >
      <AttachedFiles attachments={attachments} />
      <textarea
        ref={area}
        rows={1}
        dir="auto"
        placeholder={`Message ${info.agent}`}
        aria-label="Message"
        value={text}
        onChange={event => setText(event.target.value)}
        onPaste={event => {
          const pasted = pastedFiles(event.clipboardData)
          if (pasted.length === 0) return
          event.preventDefault()
          void attachments.add(pasted)
        }}
        onKeyDown={event => {
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
          event.preventDefault()
          void send()
        }}
      />
      <ComposerBar attachments={attachments} isEmpty={isEmpty} />
    </form>
  )
}

/** Files, or a text that is too long for the field. A copied cell or page is text with a picture of it: text wins. */
function pastedFiles(clipboard: DataTransfer): File[] {
  const text = clipboard.getData('text/plain')
  if (text.length > LONGEST_PASTE) return [new File([text], 'pasted.txt', { type: 'text/plain' })]
  return text === '' ? [...clipboard.files] : []
}

function ComposerBar({ attachments, isEmpty }: { attachments: Attachments; isEmpty: boolean }) {
  const { thread } = useChat()
  const { live } = useObserved(thread.state)
  const picker = useRef<HTMLInputElement>(null)
  return (
    <div className="composer-bar">
      <IconButton icon="clip" label="Attach a picture or a file" onClick={() => picker.current?.click()} />
      <input
        ref={picker}
        className="visually-hidden"
        type="file"
        multiple
        tabIndex={-1}
        aria-label="Files to attach"
        onChange={event => {
          void attachments.add(event.target.files ?? [])
          event.target.value = ''
        }}
      />
      <ModelPicker />
      <ThinkingPicker />
      <span className="spacer" />
      {live && live.phase !== 'finished' ? (
        <button
          type="button"
          className="send-button"
          aria-label="Stop"
          title="Stop (Esc)"
          disabled={live.phase === 'stopping'}
          onClick={() => void thread.stop()}
        >
          <Icon name="stop" size={18} />
        </button>
      ) : (
        <button
          type="submit"
          className="send-button"
          aria-label="Send"
          title="Send (Enter)"
          disabled={isEmpty}
        >
          <Icon name="send" size={18} />
        </button>
      )}
    </div>
  )
}

function AttachedFiles({ attachments }: { attachments: Attachments }) {
  const { files, problem, remove } = attachments
  return (
    <>
      {problem ? (
        <p className="composer-problem" role="alert">
          {problem}
        </p>
      ) : null}
      {files.length > 0 ? (
        <ul className="attached" aria-label="Attached files">
          {files.map((file, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two attachments may be the same file.
            <li key={index}>
              <Media media={{ type: 'media', ...file }} />
              <IconButton
                icon="close"
                label={`Remove ${file.name ?? 'the file'}`}
                onClick={() => remove(index)}
              />
            </li>
          ))}
        </ul>
      ) : null}
    </>
  )
}

/** The field grows with its text up to what CSS allows. */
function useAutoHeight(area: RefObject<HTMLTextAreaElement | null>, text: string): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height depends on the text that was just drawn.
  useEffect(() => {
    const element = area.current
    if (!element) return
    element.style.height = 'auto'
    element.style.height = `${element.scrollHeight}px`
  }, [area, text])
}
