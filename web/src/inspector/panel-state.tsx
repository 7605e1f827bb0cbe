import type { Loaded } from './use-loaded.js'

/** What a panel says while there is nothing to show yet, or nothing could be loaded. */
export function PanelState({
  loaded,
  what,
  onRetry,
}: {
  loaded: Exclude<Loaded<unknown>, { state: 'done' }>
  what: string
  onRetry: () => void
}) {
  if (loaded.state === 'loading') {
    return (
      <p className="inspect-panel-state" role="status">
        Reading {what} …
      </p>
    )
  }
  return (
    <div className="inspect-panel-state" role="alert">
      <p>
        {loaded.message} The {what} could not be read.
      </p>
      <button type="button" className="inspect-panel-button" onClick={onRetry}>
        Try again
      </button>
    </div>
  )
}
