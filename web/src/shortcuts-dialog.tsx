import { useEffect, useRef } from 'react'
import { IconButton } from './shared/icon-button.js'
import { SHORTCUTS } from './use-shortcuts.js'

/** The list of keys. */
export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  const modifier = navigator.userAgent.includes('Mac') ? '⌘' : 'Ctrl'
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby="shortcuts-title" onClose={onClose}>
      <header>
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <IconButton icon="close" label="Close" onClick={() => dialog.current?.close()} />
      </header>
      <dl>
        {SHORTCUTS.map(({ keys, meaning }) => (
          <div key={keys}>
            <dt>{meaning}</dt>
            <dd>
              {keys.split(' ').map(key => (
                <kbd key={key}>{key === 'Mod' ? modifier : key}</kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </dialog>
  )
}
