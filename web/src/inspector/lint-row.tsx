import { useId, useState } from 'react'
import type { LangoClient } from '../../../src/client/client.js'
import { FindingItem } from './finding-item.js'
import type { ProfileLint } from './types.js'
import { plural, profileTitle } from './words.js'

export interface LintRowProps {
  profile: ProfileLint
  client: LangoClient
  sessionId: string
}

/** One provider: its verdict in words, and on request what it is about. */
export function LintRow({ profile, client, sessionId }: LintRowProps) {
  const [isOpen, setIsOpen] = useState(false)
  const [shown, setShown] = useState(PORTION)
  const contentId = useId()
  const { findings } = profile
  const unlisted = profile.breaks + profile.mapped - findings.length
  return (
    <li className={`lint-row ${profile.refused ? 'is-refused' : 'is-accepted'}`}>
      <button
        type="button"
        className="lint-row-head"
        aria-expanded={isOpen}
        aria-controls={contentId}
        disabled={findings.length === 0}
        onClick={() => setIsOpen(!isOpen)}
      >
        <span className="lint-row-title">
          {profileTitle(profile.profile)} <code>{profile.profile}</code>
        </span>
        <span className="lint-verdicts">
          <span className={`mark ${profile.refused ? 'mark-cut' : 'mark-signed'}`}>
            as stored: {profile.refused ? 'refused' : 'accepted'}
          </span>
          <span className="mark mark-signed">with Lango: {outcomeText(profile)}</span>
        </span>
      </button>
      <div id={contentId} hidden={!isOpen}>
        {isOpen ? (
          <>
            <ul className="findings">
              {findings.slice(0, shown).map((finding, index) => (
                <FindingItem
                  // biome-ignore lint/suspicious/noArrayIndexKey: findings never change places
                  key={index}
                  finding={finding}
                  client={client}
                  sessionId={sessionId}
                />
              ))}
            </ul>
            {findings.length > shown ? (
              <button type="button" className="panel-button" onClick={() => setShown(shown + PORTION)}>
                {findings.length - shown} more
              </button>
            ) : null}
            {unlisted > 0 && findings.length <= shown ? (
              <p className="lint-remark">{plural(unlisted, 'further finding')} not listed.</p>
            ) : null}
          </>
        ) : null}
      </div>
    </li>
  )
}

const PORTION = 25

function outcomeText({ breaks, mapped }: ProfileLint): string {
  if (breaks > 0) return `goes on, ${plural(breaks, 'repair')}`
  return mapped > 0 ? `goes on, ${mapped} rewritten` : 'goes on unchanged'
}
