import { useState } from 'react'
import { Logo } from './shared/icons.js'

interface TokenGateProps {
  /** A token was given and the server did not take it. */
  isRefused: boolean
  onEnter: (token: string) => void
}

/** A server that others can reach asks who is there. The token is kept for this tab only. */
export function TokenGate({ isRefused, onEnter }: TokenGateProps) {
  const [token, setToken] = useState('')
  return (
    <main className="empty-state splash">
      <Logo size={52} />
      <h1>This server asks for a token</h1>
      <p>It is the one that the server was started with.</p>
      <form
        className="token-form"
        onSubmit={event => {
          event.preventDefault()
          if (token.trim()) onEnter(token.trim())
        }}
      >
        <input
          type="password"
          autoComplete="current-password"
          aria-label="Token"
          aria-invalid={isRefused}
          value={token}
          onChange={event => setToken(event.target.value)}
        />
        <button type="submit" className="button primary">
          Enter
        </button>
      </form>
      {isRefused ? <p role="alert">That token was not accepted.</p> : null}
    </main>
  )
}
