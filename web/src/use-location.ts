import { useCallback, useEffect, useState } from 'react'

/** What the page's address names: a chat, `/s/{id}`, a new one, `/`, or the page that checks a history, `/check`. */
export interface Place {
  sessionId: string | undefined
  isCheck: boolean
}

type Navigate = (sessionId: string | undefined, how: 'push' | 'replace') => void

/** The place, how to go to a chat, and how to go to the check. */
export function useLocation(): [Place, Navigate, () => void] {
  const [place, setPlace] = useState(readPlace)
  useEffect(() => {
    const onChange = () => setPlace(readPlace())
    window.addEventListener('popstate', onChange)
    return () => window.removeEventListener('popstate', onChange)
  }, [])
  const go = useCallback((path: string, how: 'push' | 'replace') => {
    if (how === 'replace') history.replaceState(null, '', path)
    else if (location.pathname !== path) history.pushState(null, '', path)
    setPlace(readPlace())
  }, [])
  const navigate = useCallback<Navigate>(
    (next, how) => go(next === undefined ? '/' : `/s/${encodeURIComponent(next)}`, how),
    [go],
  )
  const openCheck = useCallback(() => go(CHECK, 'push'), [go])
  return [place, navigate, openCheck]
}

const CHECK = '/check'

function readPlace(): Place {
  const found = /^\/s\/([^/]+)$/.exec(location.pathname)?.[1]
  const isCheck = location.pathname === CHECK
  try {
    return { sessionId: found === undefined ? undefined : decodeURIComponent(found), isCheck }
  } catch {
    return { sessionId: found, isCheck }
  }
}
