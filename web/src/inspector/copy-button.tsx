import { useEffect, useState } from 'react'

/** Copies, and says for a moment whether it could. */
export function CopyButton({ label, text }: { label: string; text: () => string }) {
  const [outcome, setOutcome] = useState<'copied' | 'refused'>()
  useEffect(() => {
    if (outcome === undefined) return
    const timer = setTimeout(() => setOutcome(undefined), 2000)
    return () => clearTimeout(timer)
  }, [outcome])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text())
      setOutcome('copied')
    } catch {
      setOutcome('refused')
    }
  }
  return (
    <button type="button" className="inspect-panel-button" aria-live="polite" onClick={() => void copy()}>
      {outcome === undefined ? label : outcome === 'copied' ? 'Copied' : 'The browser refused'}
    </button>
  )
}
