import { useEffect, useState } from 'react'
import { Icon } from './icons.js'

/** Copies a text and says so for a moment. */
export function CopyButton({
  text,
  label = 'Copy',
  isIcon = false,
}: {
  text: string
  label?: string
  isIcon?: boolean
}) {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 1600)
    return () => clearTimeout(timer)
  }, [copied])
  const shown = copied ? 'Copied' : label
  return (
    <button
      type="button"
      className={isIcon ? 'icon-button' : 'quiet-button'}
      aria-label={shown}
      title={shown}
      onClick={() => void copy(text).then(setCopied)}
    >
      <Icon name={copied ? 'check' : 'copy'} />
      {isIcon ? null : <span>{shown}</span>}
    </button>
  )
}

/** The clipboard is closed to pages without TLS on other machines; the old way works there. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    document.body.append(area)
    area.select()
    const done = document.execCommand('copy')
    area.remove()
    return done
  }
}
