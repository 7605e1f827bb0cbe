import { CopyButton } from '../shared/copy-button.js'
import { downloadText } from '../shared/download.js'
import { Icon } from '../shared/icons.js'
import type { CheckedText } from '../state/api.js'

type CheckedHistory = CheckedText['histories'][number]
type FoundProblem = CheckedHistory['problems'][number]
type HealedFile = NonNullable<CheckedHistory['healed']>

interface CheckResultProps {
  checked: CheckedText
  onFormat: (format: string) => void
}

/** The verdict: what it is, who rejects it, each problem, and the healed file. */
export function CheckResult({ checked, onFormat }: CheckResultProps) {
  const { format, candidates, histories, more } = checked
  return (
    <div className="check-result" role="status">
      {format ? null : (
        <div className="check-unsure">
          <p>
            <strong>Not sure what this is.</strong> It reads as several formats. Which one is it?
          </p>
          <div className="check-actions">
            {candidates.map(({ format: id, name }) => (
              <button key={id} type="button" className="button" onClick={() => onFormat(id)}>
                {name}
              </button>
            ))}
          </div>
        </div>
      )}
      {histories.map((history, index) => (
        <HistoryVerdict
          // biome-ignore lint/suspicious/noArrayIndexKey: the list is shown once and never reordered.
          key={index}
          history={history}
          what={format?.name ?? 'a history'}
        />
      ))}
      {more > 0 ? (
        <p className="hint">{more} more histories were not checked: use lango lint for them.</p>
      ) : null}
    </div>
  )
}

function HistoryVerdict({ history, what }: { history: CheckedHistory; what: string }) {
  const { name, messages, notes, profiles, problems, moreProblems, healed } = history
  const refusing = profiles.filter(({ refused }) => refused)
  return (
    <section className="check-history" aria-label={name || 'Verdict'}>
      <h3>
        {name ? `${name}: ` : ''}
        {what}, {messages} {messages === 1 ? 'message' : 'messages'}
      </h3>
      <p className="check-verdict" data-refused={refusing.length > 0 || undefined}>
        <Icon name={refusing.length > 0 ? 'warning' : 'check'} />
        <span>{verdictText(refusing.length, profiles.length)}</span>
      </p>
      {profiles.length > 1 ? (
        <ul className="check-profiles" aria-label="Verdicts by profile">
          {profiles.map(({ profile, refused }) => (
            <li key={profile} data-refused={refused || undefined}>
              {profile}
              <span className="visually-hidden">{refused ? ' rejects it' : ' accepts it'}</span>
            </li>
          ))}
        </ul>
      ) : null}
      {notes.map(note => (
        <p key={note} className="hint">
          {note}
        </p>
      ))}
      <Problems problems={problems} />
      {moreProblems > 0 ? <p className="hint">… and {moreProblems} more.</p> : null}
      {healed ? <Healed healed={healed} /> : null}
    </section>
  )
}

function verdictText(refusing: number, all: number): string {
  if (refusing === 0) return all === 1 ? 'Accepted: nothing is wrong.' : 'Every provider accepts it.'
  if (all === 1) return 'Rejected as it is.'
  return `${refusing} of ${all} profiles reject it as it is.`
}

function Problems({ problems }: { problems: readonly FoundProblem[] }) {
  return (
    <ol className="check-problems">
      {problems.map(({ where, code, problem, refusals, repairs }) => (
        <li key={`${where} ${code}`}>
          <p>
            <code>{where}</code> {problem}
          </p>
          {refusals.map(({ words, profiles }) =>
            words === undefined ? null : (
              <figure key={words}>
                <figcaption>{profiles.join(', ')}</figcaption>
                <blockquote>{words}</blockquote>
              </figure>
            ),
          )}
          {repairs.map(repair => (
            <p key={repair} className="check-cure">
              <Icon name="check" />
              <span>{repair}</span>
            </p>
          ))}
        </li>
      ))}
    </ol>
  )
}

function Healed({ healed }: { healed: HealedFile }) {
  const { fileName, text, note, left } = healed
  return (
    <section className="check-healed" aria-label="The healed file">
      <h4>The healed file</h4>
      <p>{note}</p>
      {left.length > 0 ? (
        <>
          <p className="check-left">Repair does not touch what is beside the messages. Still rejected:</p>
          <Problems problems={left} />
        </>
      ) : null}
      <div className="check-actions">
        <button type="button" className="button primary" onClick={() => downloadText(fileName, text)}>
          Download {fileName}
        </button>
        <CopyButton text={text} />
      </div>
      <details>
        <summary>Show it</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys. */}
        <pre tabIndex={0}>{text.slice(0, MOST_SHOWN)}</pre>
        {text.length > MOST_SHOWN ? <p className="hint">Cut here; the download is complete.</p> : null}
      </details>
    </section>
  )
}

const MOST_SHOWN = 20_000
