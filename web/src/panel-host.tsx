import { lazy, Suspense } from 'react'
import { type Panel, useChat } from './chat-context.js'

const InspectorPanel = lazy(() =>
  import('./inspector/inspector-panel.js').then(module => ({ default: module.InspectorPanel })),
)
const LintPanel = lazy(() =>
  import('./inspector/lint-panel.js').then(module => ({ default: module.LintPanel })),
)

interface PanelHostProps {
  panel: Panel
  sessionId: string
  onClose: () => void
}

/** What stands beside the chat; its code is loaded when it is first opened. */
export function PanelHost({ panel, sessionId, onClose }: PanelHostProps) {
  const { client } = useChat()
  return (
    <Suspense fallback={null}>
      {panel.type === 'lint' ? (
        <LintPanel client={client} sessionId={sessionId} onClose={onClose} />
      ) : (
        <InspectorPanel client={client} sessionId={sessionId} runId={panel.runId} onClose={onClose} />
      )}
    </Suspense>
  )
}
