import { useCallback, useEffect, useState } from 'react'

/** The session in the page's address, `/s/{id}`, and how to go to another. */
export function useLocationSession(): [
  string | undefined,
  (sessionId: string | undefined, how: 'push' | 'replace') => void,
] {
  const [sessionId, setSessionId] = useState(readSession)
  useEffect(() => {
    const onChange = () => setSessionId(readSession())
    window.addEventListener('popstate', onChange)
    return () => window.removeEventListener('popstate', onChange)
  }, [])
  const navigate = useCallback((next: string | undefined, how: 'push' | 'replace') => {
    const path = next === undefined ? '/' : `/s/${encodeURIComponent(next)}`
    if (how === 'replace') history.replaceState(null, '', path)
    else if (location.pathname !== path) history.pushState(null, '', path)
    setSessionId(next)
  }, [])
  return [sessionId, navigate]
}

function readSession(): string | undefined {
  const found = /^\/s\/([^/]+)$/.exec(location.pathname)?.[1]
  try {
    return found === undefined ? undefined : decodeURIComponent(found)
  } catch {
    return found
  }
}
