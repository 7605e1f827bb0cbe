import { useCallback, useState } from 'react'
import { readStored, writeStored } from './shared/stored.js'
import type { ModelChoice } from './state/api.js'

const PREFIX = 'lango-model:'

/** The model that the reader chose for a session; a choice made before its first message goes with it. */
export function useChosenModel(
  sessionId: string | undefined,
  models: readonly ModelChoice[],
): [string | undefined, (reference: string) => void] {
  const [chosen, setChosen] = useState<{ sessionId: string | undefined; reference: string }>()
  const setModel = useCallback(
    (reference: string) => {
      setChosen({ sessionId, reference })
      if (sessionId !== undefined) writeStored(PREFIX + sessionId, reference)
    },
    [sessionId],
  )
  if (chosen && chosen.sessionId === undefined && sessionId !== undefined) {
    writeStored(PREFIX + sessionId, chosen.reference)
    setChosen({ sessionId, reference: chosen.reference })
  }
  const kept = chosen?.sessionId === sessionId ? chosen?.reference : read(sessionId)
  const isUsable = models.some(({ reference, keyPresent }) => reference === kept && keyPresent)
  return [isUsable ? kept : undefined, setModel]
}

function read(sessionId: string | undefined): string | undefined {
  if (sessionId === undefined) return undefined
  return readStored(PREFIX + sessionId)
}
