/** Broken histories to try: cards on the first page, and in an opened one what a provider says and what Lango makes of it. */
import { useEffect, useState } from 'react'
import { useChat, useObserved } from '../chat-context.js'
import { Icon, type IconName } from '../shared/icons.js'
import type { BrokenHistory, SentAsItIs } from '../state/api.js'
import { type RunStatus, runStatus } from '../state/run-status.js'

/** Sessions that were opened from a card are known by their ids. */
const OPENED = /^gallery-(.+)-[0-9a-f]{8}$/

/** The histories, read once for the page. */
function useHistories(): readonly BrokenHistory[] {
  const { client } = useChat()
  const [histories, setHistories] = useState<readonly BrokenHistory[]>([])
  useEffect(() => {
    let isGone = false
    // Without the cards the page is still a chat.
    client.brokenHistories().then(
      list => !isGone && setHistories(list.histories),
      () => {},
    )
    return () => {
      isGone = true
    }
  }, [client])
  return histories
}

/** One card for each broken history; a click opens it as a chat. */
export function BrokenCards() {
  const { client, openSession, openCheck, sessions, thread } = useChat()
  const histories = useHistories()
  const [opening, setOpening] = useState<string>()
  if (histories.length === 0) return null
  const open = async (id: string) => {
    setOpening(id)
    try {
      const { sessionId } = await client.openBroken(id)
      void sessions.refresh()
      openSession(sessionId)
    } catch (error) {
      setOpening(undefined)
      thread.showError(error)
    }
  }
  return (
    <section className="gallery" aria-labelledby="gallery-title">
      <h3 id="gallery-title">See a broken history heal</h3>
      <p>Each of these earned a 400. Open one, send it as it is, then send it through Lango.</p>
      <ul className="gallery-cards">
        {histories.map(({ id, title, profile }) => (
          <li key={id}>
            <button type="button" disabled={opening !== undefined} onClick={() => void open(id)}>
              <strong className="example-title">{title}</strong>
              <span className="gallery-profile">{profile}</span>
            </button>
          </li>
        ))}
        <li>
          <button type="button" className="gallery-own" onClick={openCheck}>
            <strong className="example-title">Paste yours</strong>
            <span>what is wrong, and the healed file</span>
          </button>
        </li>
      </ul>
    </section>
  )
}

/** In a chat that was opened from a card: send it as it is, or through Lango. */
export function BrokenNotice() {
  const { thread } = useChat()
  const { sessionId } = useObserved(thread.state)
  const id = OPENED.exec(sessionId ?? '')?.[1]
  return id === undefined ? null : <BrokenChat key={sessionId} id={id} />
}

function BrokenChat({ id }: { id: string }) {
  const { client, thread, openPanel } = useChat()
  const state = useObserved(thread.state)
  const history = useHistories().find(entry => entry.id === id)
  const [refusal, setRefusal] = useState<SentAsItIs>()
  const [isBusy, setBusy] = useState(false)
  const [healedBy, setHealedBy] = useState<string>()
  if (!history || (healedBy === undefined && (state.live || state.lastRun))) return null
  const send = async () => {
    setBusy(true)
    await client.sendBroken(id).then(setRefusal, error => thread.showError(error))
    setBusy(false)
  }
  const heal = async () => {
    setBusy(true)
    const runId = await thread.heal(history.question)
    setBusy(false)
    if (runId === undefined) return
    setHealedBy(runId)
    openPanel({ type: 'inspector', runId })
  }
  return (
    <section className="broken" aria-label="A broken history">
      <p className="broken-story">
        <Icon name="warning" />
        <span>{history.story}</span>
      </p>
      {refusal ? (
        <p className="broken-refusal" role="status">
          <strong>
            {refusal.profile} answers {refusal.status}
          </strong>
          <code>{refusal.message}</code>
        </p>
      ) : null}
      {healedBy === undefined ? (
        <div className="broken-actions">
          <button type="button" className="button" disabled={isBusy} onClick={() => void send()}>
            Send it as it is
          </button>
          <button type="button" className="button primary" disabled={isBusy} onClick={() => void heal()}>
            Send it through Lango
          </button>
          <span className="broken-next">next message: “{history.question}”</span>
        </div>
      ) : (
        <RunLine
          status={runStatus(state, healedBy)}
          onInspect={() => openPanel({ type: 'inspector', runId: healedBy })}
        />
      )}
    </section>
  )
}

function RunLine({ status, onInspect }: { status: RunStatus; onInspect: () => void }) {
  const { icon, text } = describe(status)
  return (
    <p className="broken-run" data-status={status.type} role="status">
      <Icon name={icon} />
      <span>{text}</span>
      <button type="button" className="button" onClick={onInspect}>
        See what was repaired
      </button>
    </p>
  )
}

function describe(status: RunStatus): { icon: IconName; text: string } {
  switch (status.type) {
    case 'running':
      return { icon: 'clock', text: 'Sent through Lango. The answer is not complete yet.' }
    case 'waiting':
      return { icon: 'shield', text: 'The run waits for your answer.' }
    case 'stopped':
      return { icon: 'stop', text: 'The run was stopped before it answered.' }
    case 'answered':
      return { icon: 'check', text: 'Repaired, sent and answered.' }
    case 'failed':
      return {
        icon: 'warning',
        text: status.error ? `The run failed: ${status.error.message}` : 'This run failed.',
      }
  }
}
