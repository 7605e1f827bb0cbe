import { useVirtualizer } from '@tanstack/react-virtual'
import { type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { CompareRow } from './compare-row.js'
import type { DescribedRow } from './describe-rows.js'
import { foldRows, type ListItem } from './fold-rows.js'
import { countText, plural } from './words.js'

export interface SideBySideProps {
  rows: readonly DescribedRow[]
  scroller: RefObject<HTMLElement | null>
  /** The stored message to scroll to. */
  target: number | undefined
  /** How many stored messages stand before the first row. */
  older: number
  onOlder: () => void
}

/** The stored history and the request, row by row. Only what is in sight is on the page. */
export function SideBySide({ rows, scroller, target, older, onOlder }: SideBySideProps) {
  const [changesOnly, setChangesOnly] = useState(false)
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set())
  const items = useMemo(() => foldRows(rows, { changesOnly, unfolded }), [rows, changesOnly, unfolded])
  const changed = useMemo(() => rows.filter(row => row.fate !== 'same').length, [rows])
  const list = useRef<HTMLDivElement>(null)
  const virtualizer = useRowVirtualizer(items, list, scroller)
  useEffect(() => {
    if (target === undefined) return
    const at = items.findIndex(item => item.rows.some(row => row.stored.some(({ seq }) => seq === target)))
    const fold = items[at]?.isFold ? items[at].key : undefined
    if (fold !== undefined) setUnfolded(before => new Set([...before, fold]))
    else if (at >= 0) virtualizer.scrollToIndex(at, { align: 'center' })
  }, [target, items, virtualizer])
  return (
    <div>
      <div className="inspect-compare-tools">
        <label>
          <input
            type="checkbox"
            checked={changesOnly}
            onChange={event => setChangesOnly(event.target.checked)}
          />
          Only what differs ({countText(changed)} of {countText(rows.length)})
        </label>
        {older > 0 ? (
          <button type="button" className="inspect-panel-button" onClick={onOlder}>
            {plural(older, 'older message')}
          </button>
        ) : null}
      </div>
      <div className="inspect-compare-head" aria-hidden="true">
        <span>Stored</span>
        <span>Sent</span>
      </div>
      {items.length === 0 ? (
        <p className="inspect-panel-state">Everything was sent as it is stored.</p>
      ) : null}
      <div ref={list} className="inspect-compare-list" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map(({ index, key, start }) => {
          const item = items[index]
          if (!item) return null
          return (
            <div
              key={key}
              ref={virtualizer.measureElement}
              data-index={index}
              className="inspect-compare-item"
              style={{ transform: `translateY(${start - virtualizer.options.scrollMargin}px)` }}
            >
              <Item
                item={item}
                target={target}
                onUnfold={() => setUnfolded(before => new Set([...before, item.key]))}
              />
            </div>
          )
        })}
      </div>
    </div>
  )
}

function Item({
  item,
  target,
  onUnfold,
}: {
  item: ListItem
  target: number | undefined
  onUnfold: () => void
}) {
  const [row] = item.rows
  if (!item.isFold && row) {
    return <CompareRow row={row} isTarget={row.stored.some(({ seq }) => seq === target)} />
  }
  const messages = item.rows.flatMap(one => one.stored)
  const tokens = messages.reduce((all, message) => all + message.tokens, 0)
  return (
    <button type="button" className="inspect-compare-fold" onClick={onUnfold}>
      <span className="inspect-mark inspect-mark-cut">not sent</span> {plural(messages.length, 'message')},{' '}
      {countText(tokens)} tokens <span className="inspect-compare-fold-more">show</span>
    </button>
  )
}

function useRowVirtualizer(
  items: readonly ListItem[],
  list: RefObject<HTMLElement | null>,
  scroller: RefObject<HTMLElement | null>,
) {
  const [scrollMargin, setScrollMargin] = useState(0)
  useLayoutEffect(() => {
    const measure = () => setScrollMargin(list.current?.offsetTop ?? 0)
    measure()
    const observer = new ResizeObserver(measure)
    if (scroller.current) observer.observe(scroller.current)
    return () => observer.disconnect()
  }, [list, scroller])
  return useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 110,
    getItemKey: index => items[index]?.key ?? index,
    overscan: 6,
    scrollMargin,
  })
}
