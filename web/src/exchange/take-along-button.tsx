import { lazy, Suspense, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { useChat, useObserved } from '../chat-context.js'
import { IconButton } from '../shared/icon-button.js'
import { Menu, type MenuAction } from '../shared/menu.js'
import type { TakenAs } from './take-along.js'

const ExportDialog = lazy(() =>
  import('./export-dialog.js').then(module => ({ default: module.ExportDialog })),
)

/** Downloads the chat: a page to share, Markdown to read, or everything, to import again. */
export function TakeAlongButton({ sessionId, title }: { sessionId: string; title: string }) {
  const { client, thread, variants } = useChat()
  const all = useObserved(variants.state)
  const at = all.findIndex(each => each.sessionId === sessionId)
  const variant = at < 0 ? undefined : `variant ${at + 1} of ${all.length}`
  const [isOpen, setOpen] = useState(false)
  const [exportName, setExportName] = useState<string>()
  const button = useRef<HTMLButtonElement>(null)
  const close = () => {
    flushSync(() => setOpen(false))
    button.current?.focus()
  }
  const take = (as: TakenAs) => async () => {
    close()
    try {
      const { takeAlong } = await import('./take-along.js')
      await takeAlong(client, { sessionId, title, variant }, as)
    } catch (error) {
      thread.showError(error)
    }
  }
  const exportAs = async () => {
    close()
    const { fileName } = await import('./take-along.js')
    setExportName(fileName(title, variant))
  }
  const actions: MenuAction[] = [
    { icon: 'share', label: 'Web page, to share', act: take('html') },
    { icon: 'file', label: 'Markdown, to read', act: take('md') },
    { icon: 'down', label: 'JSON lines, to import', act: take('jsonl') },
    { icon: 'down', label: 'For another framework …', act: () => void exportAs() },
  ]
  return (
    <div className="menu-place">
      <IconButton
        ref={button}
        icon="share"
        label="Share or export"
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      />
      {isOpen ? <Menu actions={actions} onClose={close} onLeave={() => setOpen(false)} /> : null}
      {exportName === undefined ? null : (
        <Suspense fallback={null}>
          <ExportDialog name={exportName} sessionId={sessionId} onClose={() => setExportName(undefined)} />
        </Suspense>
      )}
    </div>
  )
}
