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
  return (
    <nav className="step-picker" aria-label="Requests of this answer">
      <div className="step-picker-list">
        {steps.map(step => (
          <button
            key={step.step}
            type="button"
            className="step-picker-step"
            aria-current={step.step === chosen ? 'step' : undefined}
            title={`${step.model}: ${plural(step.sent.messages, 'message')}`}
            onClick={() => onChoose(step.step)}
          >
            <span className="step-picker-number">Request {step.step}</span>
            <Marks step={step} />
          </button>
        ))}
      </div>
      <button type="button" className="panel-button" onClick={onReload}>
        Refresh
      </button>
    </nav>
  )
}

function Marks({ step }: { step: InspectedStep }) {
  const cut = step.cuts.reduce((all, one) => all + one.messages, 0)
  return (
    <span className="step-picker-marks">
      {cut > 0 ? <span className="mark mark-cut">{cut} cut</span> : null}
      {step.repairs.length > 0 ? (
        <span className="mark mark-repair">{step.repairs.length} repaired</span>
      ) : null}
    </span>
  )
}
