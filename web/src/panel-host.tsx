import { lazy, Suspense } from 'react'
import { type Panel, useChat, useObserved } from './chat-context.js'
import { PageGuard, ReloadHint } from './page-guard.js'
import { IconButton } from './shared/icon-button.js'

const InspectorPanel = lazy(() =>
  import('./inspector/inspector-panel.js').then(module => ({ default: module.InspectorPanel })),
)
const LintPanel = lazy(() =>
  import('./inspector/lint-panel.js').then(module => ({ default: module.LintPanel })),
)

const MemoryPanel = lazy(() =>
  import('./inspector/memory-panel.js').then(module => ({ default: module.MemoryPanel })),
)

const UsagePanel = lazy(() =>
  import('./inspector/usage-panel.js').then(module => ({ default: module.UsagePanel })),
)

/** Up to here a panel covers the chat; `panel-frame.css` says the same. */
const COVERED_WIDTH = 900

interface PanelHostProps {
  panel: Panel
  sessionId: string
  onClose: () => void
}

/** The panel next to the chat; its code is loaded when it is first opened. */
export function PanelHost({ panel, sessionId, onClose }: PanelHostProps) {
  const { client, thread } = useChat()
  const { live } = useObserved(thread.state)
  const reveal = (seq: number) => {
    // A panel that covers the chat would hide what it points to.
    if (window.innerWidth <= COVERED_WIDTH) onClose()
    void thread.reveal(seq)
  }
  return (
    <PageGuard key={panel.type} fallback={<FailedPanel onClose={onClose} />}>
      <Suspense fallback={null}>
        {panel.type === 'lint' ? (
          <LintPanel client={client} sessionId={sessionId} onReveal={reveal} onClose={onClose} />
        ) : panel.type === 'usage' ? (
          <UsagePanel client={client} onClose={onClose} />
        ) : panel.type === 'memory' ? (
          <MemoryPanel client={client} sessionId={sessionId} onReveal={reveal} onClose={onClose} />
        ) : (
          <InspectorPanel
            client={client}
            sessionId={sessionId}
            runId={panel.runId}
            isLive={live?.runId === panel.runId}
            onClose={onClose}
          />
        )}
      </Suspense>
    </PageGuard>
  )
}

/** A panel whose code is gone. Its frame is gone with it. */
function FailedPanel({ onClose }: { onClose: () => void }) {
  return (
    <aside className="failed-panel" aria-label="Panel">
      <IconButton icon="close" label="Close the panel" onClick={onClose} />
      <ReloadHint what="The panel" />
    </aside>
  )
}
