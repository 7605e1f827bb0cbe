import { useCallback } from 'react'
import type { LangoClient } from '../../../src/client/client.js'
import './inspector.css'
import { LintRow } from './lint-row.js'
import { PanelState } from './panel-state.js'
import { SidePanel } from './side-panel.js'
import type { SessionLint } from './types.js'
import { useLoaded } from './use-loaded.js'
import { countText, plural } from './words.js'

export interface LintPanelProps {
  client: LangoClient
  sessionId: string
  onClose: () => void
}

/** Whether a session can go on with another provider: as it is stored, and as Lango sends it. */
export function LintPanel({ client, sessionId, onClose }: LintPanelProps) {
  const load = useCallback(() => client.lint(sessionId), [client, sessionId])
  const [loaded, reload] = useLoaded(load)
  if (loaded.state !== 'done') {
    return (
      <SidePanel title={TITLE} onClose={onClose}>
        <PanelState loaded={loaded} what="findings" onRetry={reload} />
      </SidePanel>
    )
  }
  const lint = loaded.value
  return (
    <SidePanel title={TITLE} subtitle={plural(lint.messages, 'message')} onClose={onClose}>
      <div className="lint">
        <Summary lint={lint} />
        <ul className="lint-list">
          {lint.profiles.map(profile => (
            <LintRow key={profile.profile} profile={profile} client={client} sessionId={sessionId} />
          ))}
        </ul>
      </div>
    </SidePanel>
  )
}

const TITLE = 'Can this session switch models?'

function Summary({ lint }: { lint: SessionLint }) {
  const refused = lint.profiles.filter(profile => profile.refused).length
  const skipped = lint.truncated?.skipped ?? 0
  return (
    <div className="lint-summary">
      <p>
        <strong>Yes, to any of them.</strong>{' '}
        {refused === 0
          ? 'Every provider would take the history as it is stored.'
          : `Sent as it is stored, ${refused} of ${lint.profiles.length} would refuse the history. Lango repairs it before each request, so the session goes on everywhere.`}
      </p>
      {skipped > 0 ? (
        <p className="lint-remark">
          Only the newest messages were looked at; {countText(skipped)} older ones were not.
        </p>
      ) : null}
    </div>
  )
}
