import { useId, useState } from 'react'
import type { LangoClient } from '../../../src/client/client.js'
import { FindingItem } from './finding-item.js'
import type { ProfileLint } from './types.js'
import { plural, profileTitle } from './words.js'

export interface LintRowProps {
  profile: ProfileLint
  client: LangoClient
  sessionId: string
  /** Histories are repaired here before they are sent. */
  repairs: boolean
  onReveal: (seq: number) => void
}

/** One provider: its verdict in words, and on request what it is about. */
export function LintRow({ profile, client, sessionId, repairs, onReveal }: LintRowProps) {
  const [isOpen, setIsOpen] = useState(false)
  const [shown, setShown] = useState(PORTION)
  const contentId = useId()
  const { findings } = profile
  const unlisted = profile.breaks + profile.mapped - findings.length
  return (
    <li className={`inspect-lint-row ${profile.refused ? 'is-refused' : 'is-accepted'}`}>
      <button
        type="button"
        className="inspect-lint-row-head"
        aria-expanded={isOpen}
        aria-controls={contentId}
        disabled={findings.length === 0}
        onClick={() => setIsOpen(!isOpen)}
      >
        <span className="inspect-lint-row-title">
          <span className="inspect-lint-chevron" aria-hidden="true">
            {findings.length === 0 ? '·' : isOpen ? '▾' : '▸'}
          </span>
          {profileTitle(profile.profile)} <code>{profile.profile}</code>
        </span>
        <span className="inspect-lint-verdicts">
          <span className={`inspect-mark ${profile.refused ? 'inspect-mark-cut' : 'inspect-mark-signed'}`}>
            as stored: {profile.refused ? 'refused' : 'accepted'}
          </span>
          {repairs ? (
            <span className="inspect-mark inspect-mark-signed">with Lango: {outcomeText(profile)}</span>
          ) : null}
        </span>
      </button>
      <div id={contentId} hidden={!isOpen}>
        {isOpen ? (
          <>
            <ul className="inspect-findings">
              {findings.slice(0, shown).map((finding, index) => (
                <FindingItem
                  // biome-ignore lint/suspicious/noArrayIndexKey: findings never change places
                  key={index}
                  finding={finding}
                  client={client}
                  sessionId={sessionId}
                  onReveal={onReveal}
                />
              ))}
            </ul>
            {findings.length > shown ? (
              <button
                type="button"
                className="inspect-panel-button"
                onClick={() => setShown(shown + PORTION)}
              >
                {findings.length - shown} more
              </button>
            ) : null}
            {unlisted > 0 && findings.length <= shown ? (
              <p className="inspect-lint-remark">{plural(unlisted, 'further finding')} not listed.</p>
            ) : null}
          </>
        ) : null}
      </div>
    </li>
  )
}

const PORTION = 25

function outcomeText({ breaks, mapped }: ProfileLint): string {
  if (breaks > 0) return `continues, ${plural(breaks, 'repair')}`
  return mapped > 0 ? `continues, ${mapped} rewritten` : 'continues unchanged'
}
