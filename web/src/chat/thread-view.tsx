import { useVirtualizer, type VirtualItem } from '@tanstack/react-virtual'
import { type MouseEvent, useEffect, useMemo, useRef, useState } from 'react'
import { fromMessages } from '../../../src/transcript/from-messages.js'
import type { ToolItem } from '../../../src/transcript/item.js'
import { useChat, useObserved } from '../chat-context.js'
import { Icon } from '../shared/icons.js'
import type { Entry } from '../state/entry.js'
import { asksPerson, liveEntries } from '../state/live-run.js'
import { queuedEntries, type ThreadState } from '../state/thread-state.js'
import { EntryView } from './entry-view.js'

/** Older messages are asked for before the reader gets to the top. */
const LOAD_AHEAD_PIXELS = 1200
/** How near to the end still counts as being there. */
const END_PIXELS = 60
/** So near to the end that nothing is. */
const NOWHERE = -1

const LAYOUT = {
  anchorTo: 'end',
  followOnAppend: true,
  overscan: 6,
  paddingStart: 28,
  paddingEnd: 28,
} as const

/** The chat itself: only what is on the screen is drawn, and it stays at the end unless the reader scrolls up. */
export function ThreadView() {
  const { thread, info } = useChat()
  const state = useObserved(thread.state)
  const entries = useEntries(state)
  const scroller = useRef<HTMLDivElement>(null)
  const [isAtEnd, setAtEnd] = useState(true)
  const endPixels = useRef(END_PIXELS)
  const virtualizer = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroller.current,
    estimateSize: index => estimate(entries[index]),
    getItemKey: index => rowKey(entries[index], state) ?? index,
    scrollEndThreshold: endPixels.current,
    ...LAYOUT,
  })
  useOpenAtEnd(state, entries.length, () => virtualizer.scrollToEnd())
  useStayAtEnd(state, isAtEnd, () => virtualizer.scrollToEnd())
  const items = virtualizer.getVirtualItems()
  useShownNotes(items.map(({ index }) => entries[index]))
  const revealed = useRevealed(entries, index => virtualizer.scrollToIndex(index, { align: 'center' }))
  const onScroll = () => {
    const element = scroller.current
    if (!element) return
    setAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < END_PIXELS)
    if (element.scrollTop < LOAD_AHEAD_PIXELS && state.older === 'idle') void thread.loadOlder()
  }
  /** What unfolds grows downwards, from under the pointer; at the end of the chat as well. */
  const onClick = (event: MouseEvent) => {
    if (!(event.target instanceof Element) || !event.target.closest('[aria-expanded]')) return
    const keepEnd = (pixels: number) =>
      virtualizer.setOptions({ ...virtualizer.options, scrollEndThreshold: pixels })
    endPixels.current = NOWHERE
    keepEnd(NOWHERE)
    afterLayout(() => {
      endPixels.current = END_PIXELS
      keepEnd(END_PIXELS)
      onScroll()
    })
  }
  return (
    <div className="thread-frame">
      <section
        ref={scroller}
        className="thread"
        onScroll={onScroll}
        onClickCapture={onClick}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
        tabIndex={0}
        aria-label="Messages"
      >
        <OlderNotice state={state} onRetry={() => void thread.loadOlder()} />
        <div className="thread-rows" style={{ height: virtualizer.getTotalSize() }}>
          {items.map(item => (
            <ThreadRow
              key={item.key}
              item={item}
              entries={entries}
              agent={info.agent}
              revealed={revealed}
              measure={virtualizer.measureElement}
            />
          ))}
        </div>
      </section>
      {isAtEnd ? null : <ToNewest onClick={() => virtualizer.scrollToEnd({ behavior: 'auto' })} />}
      <Announcer state={state} />
    </div>
  )
}

interface ThreadRowProps {
  item: VirtualItem
  entries: readonly Entry[]
  agent: string
  revealed: string | undefined
  measure: (element: HTMLElement | null) => void
}

function ThreadRow({ item, entries, agent, revealed, measure }: ThreadRowProps) {
  const entry = entries[item.index]
  if (!entry) return null
  return (
    <div
      ref={measure}
      data-index={item.index}
      data-kind={entry.kind}
      data-revealed={entry.key === revealed || undefined}
      className="thread-row"
      style={{ transform: `translateY(${item.start}px)` }}
    >
      <EntryView
        entry={entry}
        author={authorLabel(entry, entries[item.index - 1], agent)}
        isLast={item.index >= entries.length - 2}
      />
    </div>
  )
}

function ToNewest({ onClick }: { onClick: () => void }) {
  return (
    <button type="button" className="to-newest" onClick={onClick}>
      <Icon name="down" size={14} />
      To the newest
    </button>
  )
}

function rowKey(entry: Entry | undefined, { aliases }: ThreadState): string | undefined {
  return entry && (aliases.get(entry.key) ?? entry.key)
}

function useEntries(state: ThreadState): readonly Entry[] {
  const { messages, notes, live, queued } = state
  const openEnd = live !== undefined && !live.user
  const stored = useMemo(() => fromMessages(messages, notes, openEnd), [messages, notes, openEnd])
  const running = useMemo(() => (live ? [...stored, ...liveEntries(live)] : stored), [stored, live])
  const liveId = live?.runId
  return useMemo(() => [...running, ...queuedEntries(queued, liveId)], [running, queued, liveId])
}

/** A session opens at its end, once, when its first entries are there; a message of one's own goes there too. */
function useOpenAtEnd(state: ThreadState, count: number, scrollToEnd: () => void): void {
  const scroll = useRef(scrollToEnd)
  scroll.current = scrollToEnd
  const hasEntries = count > 0
  const sent = state.live?.user ? state.live.runId : ''
  // biome-ignore lint/correctness/useExhaustiveDependencies: it scrolls when another session is opened.
  useEffect(() => {
    if (hasEntries) scroll.current()
  }, [state.sessionId, hasEntries])
  // An answer that is complete moves nobody: only a message that was sent does.
  useEffect(() => {
    if (sent !== '') scroll.current()
  }, [sent])
}

/** A glance in passing asks for nothing. */
const GLANCE_MS = 250

/** Asks for the marks of the answers that are on the screen. */
function useShownNotes(shown: readonly (Entry | undefined)[]): void {
  const { thread } = useChat()
  const seqs = shown.flatMap(entry => (entry?.kind === 'user' && entry.seq !== undefined ? [entry.seq] : []))
  const names = seqs.join()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the numbers themselves, not their array.
  useEffect(() => {
    if (names === '') return
    const timer = setTimeout(() => void thread.showNotes(seqs), GLANCE_MS)
    return () => clearTimeout(timer)
  }, [names, thread])
}

const REVEALED_MS = 2000

/** Scrolls to a message that was asked for, and marks it for a moment. Returns the key of its entry. */
function useRevealed(entries: readonly Entry[], scrollTo: (index: number) => void): string | undefined {
  const { thread } = useChat()
  const wanted = useObserved(thread.revealed)
  const [key, setKey] = useState<string>()
  // biome-ignore lint/correctness/useExhaustiveDependencies: it scrolls when it is asked to, not when more comes.
  useEffect(() => {
    if (!wanted) return
    const index = entries.findLastIndex(entry => (seqOf(entry) ?? Number.POSITIVE_INFINITY) <= wanted.seq)
    if (index < 0) return
    scrollTo(index)
    setKey(entries[index]?.key)
    const timer = setTimeout(() => setKey(undefined), REVEALED_MS)
    return () => clearTimeout(timer)
  }, [wanted])
  return key
}

/** The message that an entry was made of; marks and live entries have none. */
function seqOf({ key }: Entry): number | undefined {
  const found = /^m(\d+)/.exec(key)?.[1]
  return found === undefined ? undefined : Number(found)
}

/** Once the page has been laid out and what grew has been measured. */
function afterLayout(act: () => void): void {
  requestAnimationFrame(() => requestAnimationFrame(act))
}

/** Marks that come later are put between rows; a reader at the end stays there. */
function useStayAtEnd({ notes }: ThreadState, isAtEnd: boolean, scrollToEnd: () => void): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: only marks do this, not every way to be at the end.
  useEffect(() => {
    if (isAtEnd) scrollToEnd()
  }, [notes])
}

function OlderNotice({ state, onRetry }: { state: ThreadState; onRetry: () => void }) {
  if (state.older === 'loading') return <p className="older-notice">Loading older messages…</p>
  if (state.older !== 'failed') return null
  return (
    <p className="older-notice">
      Older messages could not be loaded.{' '}
      <button type="button" className="quiet-button" onClick={onRetry}>
        Try again
      </button>
    </p>
  )
}

/** The name over an entry: when the author is not that of the entry before, nor the root agent. */
function authorLabel(entry: Entry, before: Entry | undefined, agent: string): string | undefined {
  if (!('author' in entry) || entry.author === '') return undefined
  const previous = before && 'author' in before ? before.author : undefined
  if (previous === entry.author) return undefined
  return entry.author === agent && previous === undefined ? undefined : entry.author
}

function estimate(entry: Entry | undefined): number {
  switch (entry?.kind) {
    case 'user':
      return 74 + Math.ceil(entry.text.length / 60) * 24 + entry.media.length * 120
    case 'text':
      return 30 + Math.ceil(entry.text.length / 85) * 26
    case 'tool':
      return 56
    case 'media':
      return 240
    case 'error':
      return 120
    default:
      return 44
  }
}

function questionOf({ name, status }: ToolItem): string {
  if (status === 'waiting') return `The tool ${name} asks for your approval.`
  return `It is not known whether a call of ${name} took effect. Your answer is needed.`
}

/** What a screen reader says of a stream: that it began, when it asks, and the answer when it is complete. */
function Announcer({ state }: { state: ThreadState }) {
  const { live } = state
  const asks = live?.items.find(entry => entry.kind === 'tool' && asksPerson(entry))
  const last = live?.items.findLast(entry => entry.kind === 'text')
  let text = ''
  if (asks?.kind === 'tool') text = questionOf(asks)
  else if (live?.phase === 'finished')
    text = last?.kind === 'text' ? last.text.slice(0, 1000) : 'The answer is complete.'
  else if (live?.items.some(entry => entry.kind === 'mark' && entry.mark.type === 'queued'))
    text = 'The message waits in the queue of this chat.'
  else if (live) text = 'The answer is being written.'
  return (
    <p className="visually-hidden" aria-live="polite">
      {text}
    </p>
  )
}
