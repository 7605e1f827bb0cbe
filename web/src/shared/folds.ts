import { useState } from 'react'

/**
 * What the reader has opened or closed. Rows come and go as the list scrolls, and live rows become stored ones;
 * what was opened stays open all the same.
 */
const folds = new Map<string, boolean>()
/** Enough for the longest reading; the oldest are forgotten first. */
const MAXIMUM_FOLDS = 2000

/** Whether something is open, and how to change that. */
export function useFold(name: string, isOpenByItself: boolean): [boolean, (isOpen: boolean) => void] {
  // Only what the reader chose is kept: a call that fails opens by itself, also if it was shown before.
  const [chosen, setOpen] = useState(() => folds.get(name))
  const change = (next: boolean) => {
    folds.delete(name)
    folds.set(name, next)
    if (folds.size > MAXIMUM_FOLDS) folds.delete(folds.keys().next().value ?? '')
    setOpen(next)
  }
  return [chosen ?? isOpenByItself, change]
}
