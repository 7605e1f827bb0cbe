import { useCallback, useState } from 'react'
import { withoutBreaks } from '../../../src/base/prefix-break.js'
import type { LangoClient } from '../../../src/client/client.js'
import { CallList } from './call-list.js'
import './inspector.css'
import { PanelFrame } from './panel-frame.js'
import { PanelState } from './panel-state.js'
import { StepPicker } from './step-picker.js'
import { StepView } from './step-view.js'
import type { ModelChoice, RunInspection } from './types.js'
import { useLoaded } from './use-loaded.js'
import { bytesText, costText, countText, finishText, plural } from './words.js'

export interface InspectorPanelProps {
  client: LangoClient
  sessionId: string
  runId: string
  /** The run goes on while the panel is open; when it ends, its end is loaded. */
  isLive: boolean
  onClose: () => void
}

/** For one answer: the stored history next to every request that was sent to a model. */
export function InspectorPanel({ client, sessionId, runId, isLive, onClose }: InspectorPanelProps) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: what a run has used is known at its end
  const load = useCallback(() => loadRun(client, runId), [client, runId, isLive])
  const [loaded, reload] = useLoaded(load)
  const [chosen, setChosen] = useState<number>()
  if (loaded.state !== 'done') {
    return (
      <PanelFrame title="What the model was sent" onClose={onClose}>
        <PanelState loaded={loaded} what="requests of this answer" onRetry={reload} />
      </PanelFrame>
    )
  }
  const { inspection, models, budgetTokens } = loaded.value
  const { steps } = inspection
  // The answer came from the last request, so that is what people look for first.
  const step = steps.find(one => one.step === chosen) ?? steps.at(-1)
  return (
    <PanelFrame
      title="What the model was sent"
      subtitle={runText(inspection)}
      onClose={onClose}
      head={<StepPicker steps={steps} chosen={step?.step} onChoose={setChosen} onReload={reload} />}
    >
      {inspection.error ? (
        <p className="inspect-error" role="alert" dir="auto">
          {inspection.error.message}
        </p>
      ) : null}
      {inspection.calls.length > 0 ? <CallList calls={inspection.calls} /> : null}
      {step ? (
        <StepView
          key={step.step}
          client={client}
          sessionId={sessionId}
          inspection={inspection}
          step={step}
          model={models.find(model => model.reference === step.model)}
          budgetTokens={budgetTokens}
        />
      ) : (
        <p className="inspect-panel-state">
          No request of this answer is stored: none was sent yet, or it was removed with old runs.
        </p>
      )}
    </PanelFrame>
  )
}

interface LoadedRun {
  inspection: RunInspection
  models: ModelChoice[]
  budgetTokens: number | 'off' | undefined
}

/** Windows and the budget only complete the picture: without them the rest is shown all the same. */
async function loadRun(client: LangoClient, runId: string): Promise<LoadedRun> {
  const [inspection, models, info] = await Promise.all([
    client.inspect(runId),
    client.models().catch(() => undefined),
    client.info().catch(() => undefined),
  ])
  // Breaks have a field of their own; in this release the server sends them among the repairs, too.
  const steps = inspection.steps.map(step => ({ ...step, repairs: withoutBreaks(step.repairs) }))
  return {
    inspection: { ...inspection, steps },
    models: models?.models ?? [],
    budgetTokens: info?.budgetTokens,
  }
}

function runText({ agent, finishReason, total }: RunInspection): string {
  const { usage } = total
  return [
    agent,
    finishText(finishReason),
    plural(total.requests, 'request'),
    bytesText(total.bytes),
    ...(usage.totalTokens > 0
      ? [`${countText(usage.inputTokens)} tokens in, ${countText(usage.outputTokens)} out`]
      : []),
    ...(usage.cost === undefined || usage.totalTokens === 0 ? [] : [costText(usage.cost)]),
  ]
    .filter(Boolean)
    .join(' · ')
}
