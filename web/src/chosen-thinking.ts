import { useCallback, useMemo, useState } from 'react'
import { readStored, useStored, writeStored } from './shared/stored.js'
import type { RunOptions } from './state/api.js'

const PREFIX = 'lango-thinking:'

/** A number that this browser keeps under a name. */
export interface NumberRange {
  name: string
  least: number
  most: number
  step: number
}

/** How answers are made, in every chat of this browser; see `AnswerSettings`. */
export const TEMPERATURE: NumberRange = { name: 'lango-temperature', least: 0, most: 2, step: 0.1 }
export const LONGEST_ANSWER: NumberRange = {
  name: 'lango-longest-answer',
  least: 1,
  most: 1_000_000,
  step: 1,
}

export const THINKING = ['off', 'low', 'medium', 'high'] as const

/** What is sent with the next message. How much thinking is asked for is kept with the session. */
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
  const temperature = numberIn(TEMPERATURE, useStored(TEMPERATURE.name))
  const maxOutputTokens = numberIn(LONGEST_ANSWER, useStored(LONGEST_ANSWER.name))
  const options = useMemo(
    () => ({
      ...(model ? { model } : {}),
      ...(thinking ? { thinking } : {}),
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    }),
    [model, thinking, temperature, maxOutputTokens],
  )
  return [options, setThinking]
}

/** A kept text as a number; `undefined` when there is none, or none that a server accepts. */
function numberIn({ least, most, step }: NumberRange, text = ''): number | undefined {
  const value = Number(text)
  if (text.trim() === '' || !(value >= least && value <= most)) return undefined
  return step === 1 && !Number.isInteger(value) ? undefined : value
}
