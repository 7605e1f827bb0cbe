import { useCallback, useEffect, useState } from 'react'

export type Loaded<Value> =
  | { state: 'loading' }
  | { state: 'done'; value: Value }
  | { state: 'failed'; message: string }

/** What a promise gives, and a way to ask again. `load` must be stable: it is called anew when it changes. */
export function useLoaded<Value>(load: () => Promise<Value>): [Loaded<Value>, () => void] {
  const [loaded, setLoaded] = useState<Loaded<Value>>({ state: 'loading' })
  const [attempt, setAttempt] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new attempt loads again
  useEffect(() => {
    let isCurrent = true
    const settle = (next: Loaded<Value>) => {
      if (isCurrent) setLoaded(next)
    }
    setLoaded({ state: 'loading' })
    load().then(
      value => settle({ state: 'done', value }),
      error => settle({ state: 'failed', message: messageOf(error) }),
    )
    return () => {
      isCurrent = false
    }
  }, [load, attempt])
  return [loaded, useCallback(() => setAttempt(count => count + 1), [])]
}

function messageOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : 'The server did not answer.'
}
