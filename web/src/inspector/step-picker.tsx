import { useEffect, useRef } from 'react'
import type { InspectedStep } from './types.js'
import { plural } from './words.js'

export interface StepPickerProps {
  steps: readonly InspectedStep[]
  chosen: number | undefined
  onChoose: (step: number) => void
  onReload: () => void
}

/** Which of the run's requests is looked at. */
export function StepPicker({ steps, chosen, onChoose, onReload }: StepPickerProps) {
  const current = useRef<HTMLButtonElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another choice is another button
  useEffect(() => current.current?.scrollIntoView({ block: 'nearest', inline: 'nearest' }), [chosen])
  return (
    <nav className="inspect-step-picker" aria-label="Requests of this answer">
      <div className="inspect-step-picker-list">
        {steps.map(step => (
          <button
            key={step.step}
            ref={step.step === chosen ? current : undefined}
            type="button"
            className="inspect-step-picker-step"
            aria-current={step.step === chosen ? 'step' : undefined}
            title={`${step.model}: ${plural(step.sent.messages, 'message')}`}
            onClick={() => onChoose(step.step)}
          >
            <span>Request {step.step}</span>
            <Marks step={step} />
          </button>
        ))}
      </div>
      <button type="button" className="inspect-panel-button" onClick={onReload}>
        Refresh
      </button>
    </nav>
  )
}

function Marks({ step }: { step: InspectedStep }) {
  const cut = step.cuts.reduce((all, one) => all + one.messages, 0)
  return (
    <span className="inspect-step-picker-marks">
      {cut > 0 ? <span className="inspect-mark inspect-mark-cut">{cut} cut</span> : null}
      {step.repairs.length > 0 ? (
        <span className="inspect-mark inspect-mark-repair">{step.repairs.length} repaired</span>
      ) : null}
    </span>
  )
}
