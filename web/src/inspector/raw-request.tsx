import { useVirtualizer } from '@tanstack/react-virtual'
import {
  type KeyboardEvent,
  type RefObject,
  useDeferredValue,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import './request.css'
import { CopyButton } from './copy-button.js'
import { JsonRow } from './json-row.js'
import { ancestorsOf, firstOpen, jsonLines, searchJson } from './json-tree.js'

/** The body as it went over the wire, as a tree that folds, with a search through all of it. */
export function RawRequest({ body, scroller }: { body: unknown; scroller: RefObject<HTMLElement | null> }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => firstOpen(body))
  const search = useSearch(body, path => setOpen(before => new Set([...before, ...ancestorsOf(path)])))
  const lines = useMemo(() => jsonLines(body, open), [body, open])
  const list = useRef<HTMLDivElement>(null)
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 24,
    getItemKey: index => lines[index]?.path ?? index,
    overscan: 20,
    scrollMargin: list.current?.offsetTop ?? 0,
  })
  const { found } = search
  useEffect(() => {
    const at = lines.findIndex(line => line.path === found)
    if (found !== undefined && at >= 0) virtualizer.scrollToIndex(at, { align: 'center' })
  }, [found, lines, virtualizer])
  const toggle = (path: string) =>
    setOpen(before => {
      const next = new Set(before)
      if (!next.delete(path)) next.add(path)
      return next
    })
  return (
    <div>
      <div className="inspect-raw-tools">
        <SearchBox {...search} />
        <button type="button" className="inspect-panel-button" onClick={() => setOpen(firstOpen(body))}>
          Fold
        </button>
        <CopyButton label="Copy JSON" text={() => JSON.stringify(body, null, 2) ?? ''} />
      </div>
      <div ref={list} className="inspect-raw-list" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map(({ index, key, start }) => {
          const line = lines[index]
          return line ? (
            <div
              key={key}
              ref={virtualizer.measureElement}
              data-index={index}
              className="inspect-raw-item"
              style={{ transform: `translateY(${start - virtualizer.options.scrollMargin}px)` }}
            >
              <JsonRow line={line} isFound={line.path === found} onToggle={() => toggle(line.path)} />
            </div>
          ) : null
        })}
      </div>
    </div>
  )
}

interface Search {
  query: string
  onQuery: (query: string) => void
  count: number
  at: number
  onMove: (by: number) => void
  found: string | undefined
}

function useSearch(body: unknown, reveal: (path: string) => void): Search {
  const [query, setQuery] = useState('')
  const [at, setAt] = useState(0)
  const wanted = useDeferredValue(query)
  const paths = useMemo(() => searchJson(body, wanted), [body, wanted])
  const found = paths[at]
  const show = useRef(reveal)
  show.current = reveal
  useEffect(() => {
    if (found !== undefined) show.current(found)
  }, [found])
  return {
    query,
    onQuery: next => {
      setQuery(next)
      setAt(0)
    },
    count: paths.length,
    at,
    onMove: by => setAt(before => (paths.length === 0 ? 0 : (before + by + paths.length) % paths.length)),
    found,
  }
}

function SearchBox({ query, onQuery, count, at, onMove }: Search) {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') onMove(event.shiftKey ? -1 : 1)
    if (event.key === 'Escape' && query !== '') {
      event.preventDefault()
      onQuery('')
    }
  }
  return (
    <div className="inspect-raw-search">
      <input
        type="search"
        value={query}
        placeholder="Search the request"
        aria-label="Search the request"
        onChange={event => onQuery(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <span className="inspect-raw-count" role="status">
        {query === '' ? '' : count === 0 ? 'none' : `${at + 1} of ${count >= 500 ? '500+' : count}`}
      </span>
      <button
        type="button"
        className="inspect-panel-button"
        aria-label="Previous match"
        disabled={count === 0}
        onClick={() => onMove(-1)}
      >
        ↑
      </button>
      <button
        type="button"
        className="inspect-panel-button"
        aria-label="Next match"
        disabled={count === 0}
        onClick={() => onMove(1)}
      >
        ↓
      </button>
    </div>
  )
}
