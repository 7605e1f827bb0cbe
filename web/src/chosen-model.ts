import { useCallback, useRef, useState } from 'react'
import { readStored, writeStored } from './shared/stored.js'
import type { ModelChoice } from './state/api.js'

const PREFIX = 'lango-model:'

/** The model that new chats begin with, as the reader has set it. */
export const DEFAULT_MODEL_KEY = 'lango-default-model'

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
  const isNew = useRef(sessionId === undefined)
  if (sessionId === undefined) isNew.current = true
  else if (isNew.current) {
    // The chat that was just opened goes on with the model that it began with.
    isNew.current = false
    const begun = chosen?.reference ?? readStored(DEFAULT_MODEL_KEY)
    if (begun !== undefined && !readStored(PREFIX + sessionId)) writeStored(PREFIX + sessionId, begun)
  }
  const kept = chosen && chosen.sessionId === sessionId ? chosen.reference : read(sessionId)
  const isUsable = models.some(({ reference, keyPresent }) => reference === kept && keyPresent)
  return [isUsable ? kept : undefined, setModel]
}

function read(sessionId: string | undefined): string | undefined {
  if (sessionId === undefined) return readStored(DEFAULT_MODEL_KEY)
  return readStored(PREFIX + sessionId)
}
