import { useCallback, useMemo, useState } from 'react'
import { readStored, writeStored } from './shared/stored.js'
import type { RunOptions } from './state/api.js'

const PREFIX = 'lango-thinking:'

export const THINKING = ['off', 'low', 'medium', 'high'] as const

/** What is sent with the next message, and how much thinking is asked for: kept with the session. */
export function useRunOptions(
  sessionId: string | undefined,
  model: string | undefined,
): [RunOptions, (level: string) => void] {
  const [chosen, setChosen] = useState<{ sessionId: string | undefined; level: string }>()
  const setThinking = useCallback(
    (level: string) => {
      setChosen({ sessionId, level })
      if (sessionId !== undefined) writeStored(PREFIX + sessionId, level)
    },
    [sessionId],
  )
  // A choice made before the first message goes with its session.
  if (chosen && chosen.sessionId === undefined && sessionId !== undefined) {
    writeStored(PREFIX + sessionId, chosen.level)
    setChosen({ sessionId, level: chosen.level })
  }
  const stored = sessionId === undefined ? undefined : readStored(PREFIX + sessionId)
  const kept = chosen && chosen.sessionId === sessionId ? chosen.level : stored
  const thinking = THINKING.find(level => level === kept)
  const options = useMemo(
    () => ({ ...(model ? { model } : {}), ...(thinking ? { thinking } : {}) }),
    [model, thinking],
  )
  return [options, setThinking]
}
