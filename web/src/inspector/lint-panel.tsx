import { useCallback } from 'react'
import type { LangoClient } from '../../../src/client/client.js'
import './lint.css'
import { LintRow } from './lint-row.js'
import { lintVerdict } from './lint-verdict.js'
import { PanelFrame } from './panel-frame.js'
import { PanelState } from './panel-state.js'
import type { SessionLint } from './types.js'
import { useLoaded } from './use-loaded.js'
import { countText, plural } from './words.js'

export interface LintPanelProps {
  client: LangoClient
  sessionId: string
  /** Shows a message in the chat. */
  onReveal: (seq: number) => void
  onClose: () => void
}

/** Whether a session can continue with another provider: as it is stored, and as Lango sends it. */
export function LintPanel({ client, sessionId, onReveal, onClose }: LintPanelProps) {
  const load = useCallback(() => loadLint(client, sessionId), [client, sessionId])
  const [loaded, reload] = useLoaded(load)
  if (loaded.state !== 'done') {
    return (
      <PanelFrame title={TITLE} onClose={onClose}>
        <PanelState loaded={loaded} what="findings" onRetry={reload} />
      </PanelFrame>
    )
  }
  const { lint, repairMode } = loaded.value
  return (
    <PanelFrame title={TITLE} subtitle={plural(lint.messages, 'message')} onClose={onClose}>
      <div className="inspect-lint">
        <Summary lint={lint} repairMode={repairMode} />
        <ul className="inspect-lint-list">
          {lint.profiles.map(profile => (
            <LintRow
              key={profile.profile}
              profile={profile}
              client={client}
              sessionId={sessionId}
              repairs={repairMode === 'repair'}
              onReveal={onReveal}
            />
          ))}
        </ul>
      </div>
    </PanelFrame>
  )
}

const TITLE = 'Can this session switch models?'

async function loadLint(client: LangoClient, sessionId: string) {
  const [lint, info] = await Promise.all([client.lint(sessionId), client.info().catch(() => undefined)])
  return { lint, repairMode: info?.repair ?? 'repair' }
}

function Summary({ lint, repairMode }: { lint: SessionLint; repairMode: string }) {
  const { answer, reason } = lintVerdict(lint, repairMode)
  const skipped = lint.truncated?.skipped ?? 0
  return (
    <div className="inspect-lint-summary">
      <p>
        <strong>{answer}</strong> {reason}
      </p>
      {skipped > 0 ? (
        <p className="inspect-lint-remark">
          Only the newest messages were looked at; {countText(skipped)} older ones were not.
        </p>
      ) : null}
    </div>
  )
}
