import { Component, type ReactNode } from 'react'

interface PageGuardProps {
  children: ReactNode
  /** What stands in for a part of the page that could not be shown. */
  fallback: ReactNode
}

/**
 * Keeps the rest of the page when a part of it fails: most often its code could not be loaded, because the server
 * was updated since the page was opened and serves other files now.
 */
export class PageGuard extends Component<PageGuardProps, { failed: boolean }> {
  override state = { failed: false }

  static getDerivedStateFromError(): { failed: boolean } {
    return { failed: true }
  }

  override render(): ReactNode {
    return this.state.failed ? this.props.fallback : this.props.children
  }
}

/** One sentence and the way out. */
export function ReloadHint({ what }: { what: string }) {
  return (
    <div className="empty-state" role="alert">
      <h2>{what} could not be shown</h2>
      <p>The server may have been updated since this page was opened. Nothing of the chat is lost.</p>
      <button type="button" className="button primary" onClick={() => location.reload()}>
        Reload the page
      </button>
    </div>
  )
}
