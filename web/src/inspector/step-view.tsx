import { useCallback, useMemo, useRef, useState } from 'react'
import type { LangoClient } from '../../../src/client/client.js'
import { lostText } from '../../../src/transcript/receipt-marks.js'
import { BudgetBars } from './budget-bars.js'
import { describeStep } from './describe-rows.js'
import { firstSeqOf, lastSeqOfRun, loadHistory } from './load-history.js'
import { PanelState } from './panel-state.js'
import { RawRequest } from './raw-request.js'
import { RepairList } from './repair-list.js'
import { RequestParts } from './request-parts.js'
import { SideBySide } from './side-by-side.js'
import { budgetPicture } from './step-facts.js'
import { StepTabs, type TabName } from './step-tabs.js'
import type { InspectedStep, ModelChoice, RunInspection, StoredMessage } from './types.js'
import { type Loaded, useLoaded } from './use-loaded.js'
import { readWireRequest, type WireRequest } from './wire-messages.js'
import { bytesText, costText, countText, plural, profileTitle } from './words.js'

export interface StepViewProps {
  client: LangoClient
  sessionId: string
  inspection: RunInspection
  step: InspectedStep
  model: ModelChoice | undefined
  budgetTokens: number | 'off' | undefined
}

/** One request: its figures, its budget, and four ways to look at it. */
export function StepView({ client, sessionId, inspection, step, model, budgetTokens }: StepViewProps) {
  const [tab, setTab] = useState<TabName>('compare')
  const [target, setTarget] = useState<number>()
  const scroller = useRef<HTMLDivElement>(null)
  const request = useMemo(() => readWireRequest(step.sent.body), [step])
  const { history, older, onOlder, reach, reload } = useHistory(client, sessionId, inspection, step)
  const stored = history.state === 'done' ? history.value : NOTHING
  const described = useMemo(() => describeStep(step, request, stored), [step, request, stored])
  const showMessage = (seq: number) => {
    reach(seq)
    setTarget(seq)
    setTab('compare')
  }
  return (
    <div className="inspect-step-view" ref={scroller}>
      <StepFigures step={step} request={request} />
      <BudgetBars picture={budgetPicture(step, request, { model, budgetTokens })} />
      <StepTabs tab={tab} onTab={setTab} repairs={step.repairs.length} tools={request.tools.length}>
        {tab === 'compare' && history.state !== 'done' ? (
          <PanelState loaded={history} what="stored history" onRetry={reload} />
        ) : null}
        {tab === 'compare' && history.state === 'done' ? (
          <SideBySide
            rows={described.rows}
            scroller={scroller}
            target={target}
            older={older}
            onOlder={onOlder}
          />
        ) : null}
        {tab === 'repairs' ? (
          <RepairList step={step} seqs={described.repairSeqs} request={request} onMessage={showMessage} />
        ) : null}
        {tab === 'parts' ? <RequestParts request={request} onMessage={showMessage} /> : null}
        {tab === 'raw' ? <RawRequest body={step.sent.body} scroller={scroller} /> : null}
      </StepTabs>
    </div>
  )
}

const NOTHING: StoredMessage[] = []

/** The stored messages that the request could hold, and a bound that moves back when older ones are wanted. */
function useHistory(client: LangoClient, sessionId: string, inspection: RunInspection, step: InspectedStep) {
  const [fromSeq, setFromSeq] = useState(() => firstSeqOf(step))
  const { runId } = inspection
  const load = useCallback(async () => {
    const throughSeq = await lastSeqOfRun(client, sessionId, runId)
    return loadHistory(client, sessionId, { fromSeq, throughSeq })
  }, [client, sessionId, runId, fromSeq])
  const [loaded, reload] = useLoaded(load)
  // While older messages are on their way, the ones that are there stay.
  const shown = useRef<Loaded<StoredMessage[]>>(loaded)
  if (loaded.state !== 'loading') shown.current = loaded
  return {
    history: shown.current,
    older: fromSeq - 1,
    onOlder: () => setFromSeq(seq => Math.max(1, seq - OLDER)),
    reach: (seq: number) => setFromSeq(from => Math.min(from, Math.max(seq, from - MOST_OLDER))),
    reload,
  }
}

const OLDER = 200
/** How far back one click goes. */
const MOST_OLDER = 2000

function StepFigures({ step, request }: { step: InspectedStep; request: WireRequest }) {
  const { usage } = step
  const items = [
    ['Model', step.model],
    ['Rules', profileTitle(step.profile)],
    ['Sent', `${plural(request.messages.length, 'message')}, ${bytesText(step.sent.bytes)}`],
    ...(step.stored
      ? [['Stored', `${plural(step.stored.messages, 'message')}, ${countText(step.stored.tokens)} tokens`]]
      : []),
    ...(step.breaks.length > 0 ? [['Prompt cache', lostText(step.breaks)]] : []),
    ...(usage ? [['Counted', usageText(usage)]] : []),
    ...(usage?.cost === undefined ? [] : [['Cost', costText(usage.cost)]]),
  ]
  return (
    <dl className="inspect-step-figures">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function usageText(usage: NonNullable<InspectedStep['usage']>): string {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = usage
  return [
    `${countText(inputTokens)} tokens in`,
    ...(cachedInputTokens > 0 ? [`${countText(cachedInputTokens)} of them cached`] : []),
    `${countText(outputTokens)} out`,
    ...(reasoningTokens > 0 ? [`${countText(reasoningTokens)} of them reasoning`] : []),
  ].join(', ')
}
