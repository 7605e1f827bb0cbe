import './request.css'
import { stepReason, stepTitle } from '../../../src/transcript/repair-words.js'
import type { InspectedStep, StepRepair } from './types.js'
import type { WireRequest } from './wire-messages.js'
import { plural, profileTitle } from './words.js'

export interface RepairListProps {
  step: InspectedStep
  seqs: readonly (number | undefined)[]
  request: WireRequest
  onMessage: (seq: number) => void
}

/** What was changed before the request was sent, and why: grouped by what the provider demands. */
export function RepairList({ step, seqs, request, onMessage }: RepairListProps) {
  const groups = groupRepairs(step.repairs, seqs)
  const ids = Object.entries(step.mappedIds)
  const signed = request.messages.flatMap(message => message.parts).filter(part => part.signed).length
  return (
    <div className="inspect-repairs">
      <p className="inspect-repairs-lead">
        {step.repairs.length === 0
          ? `The history was legal for ${profileTitle(step.profile)} as it is stored. Nothing was changed.`
          : `${plural(step.repairs.length, 'change')} made the history legal for ${profileTitle(step.profile)}. The stored messages stay as they are.`}
      </p>
      {groups.map(({ name, repairs }) => (
        <section key={name} className="inspect-repair-group">
          <h3>
            {stepTitle(name)} <code>{name}</code>
          </h3>
          {stepReason(name) ? <p className="inspect-repair-reason">{stepReason(name)}</p> : null}
          <ul>
            {repairs.slice(0, SHOWN).map(({ repair, seq, index }) => (
              <li key={index} dir="auto">
                {repair.detail}{' '}
                {seq === undefined ? null : (
                  <button type="button" className="inspect-message-link" onClick={() => onMessage(seq)}>
                    message {seq}
                  </button>
                )}
              </li>
            ))}
          </ul>
          {repairs.length > SHOWN ? (
            <p className="inspect-repair-reason">and {repairs.length - SHOWN} more</p>
          ) : null}
        </section>
      ))}
      {step.breaks.length > 0 ? <Breaks step={step} /> : null}
      {ids.length > 0 ? <MappedIds ids={ids} /> : null}
      <p className="inspect-repairs-lead">
        {signed === 0
          ? 'No signature travels with this request.'
          : `${plural(signed, 'signature')} of this provider ${signed === 1 ? 'is' : 'are'} sent back as received.`}
      </p>
    </div>
  )
}

const SHOWN = 200

/** No change of the history, but of what a prompt cache can give back. */
function Breaks({ step }: { step: InspectedStep }) {
  return (
    <section className="inspect-repair-group">
      <h3>Prompt cache</h3>
      <ul>
        {step.breaks.map(({ detail }) => (
          <li key={detail} dir="auto">
            {detail}
          </li>
        ))}
      </ul>
    </section>
  )
}

function MappedIds({ ids }: { ids: readonly [string, string][] }) {
  return (
    <section className="inspect-repair-group">
      <h3>Ids</h3>
      <table className="inspect-mapped-ids">
        <thead>
          <tr>
            <th scope="col">Stored</th>
            <th scope="col">On the wire</th>
          </tr>
        </thead>
        <tbody>
          {ids.slice(0, SHOWN).map(([stored, wire]) => (
            <tr key={stored}>
              <td>
                <code>{stored || '(empty)'}</code>
              </td>
              <td>
                <code>{wire}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {ids.length > SHOWN ? <p className="inspect-repair-reason">and {ids.length - SHOWN} more</p> : null}
    </section>
  )
}

interface RepairGroup {
  name: string
  repairs: { repair: StepRepair; seq: number | undefined; index: number }[]
}

function groupRepairs(repairs: readonly StepRepair[], seqs: readonly (number | undefined)[]): RepairGroup[] {
  const groups = new Map<string, RepairGroup>()
  repairs.forEach((repair, index) => {
    const group = groups.get(repair.step) ?? { name: repair.step, repairs: [] }
    group.repairs.push({ repair, seq: seqs[index], index })
    groups.set(repair.step, group)
  })
  return [...groups.values()]
}
