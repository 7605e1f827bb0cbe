import { useEffect, useRef } from 'react'
import { own } from '../../src/base/own.js'

export interface Shortcuts {
  newChat: () => void
  search: () => void
  focusComposer: () => void
  stop: () => void
  toggleSidebar: () => void
  help: () => void
  settings: () => void
  /** Finds words in the open chat. */
  find: () => void
}

/** The keys that the help lists. `Mod` is Command on a Mac and Control elsewhere. */
export const SHORTCUTS: readonly { keys: string; meaning: string }[] = [
  { keys: 'Mod Shift O', meaning: 'New chat' },
  { keys: 'Mod K', meaning: 'Search chats' },
  { keys: 'Mod F', meaning: 'Find in this chat; twice: in the page' },
  { keys: '/', meaning: 'Write a message' },
  { keys: 'Esc', meaning: 'Stop the answer, or close the panel' },
  { keys: 'Mod B', meaning: 'Show or hide the chats' },
  { keys: 'Mod ,', meaning: 'Settings' },
  { keys: 'Enter', meaning: 'Send' },
  { keys: 'Shift Enter', meaning: 'New line' },
  { keys: '?', meaning: 'This list' },
]

/** Listens for the page's keys. Letters count only where nothing is being typed. */
export function useShortcuts(shortcuts: Shortcuts): void {
  const current = useRef(shortcuts)
  current.current = shortcuts
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const name = shortcutOf(event)
      if (!name) return
      event.preventDefault()
      current.current[name]()
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [])
}

const WITH_MODIFIER: Readonly<Record<string, keyof Shortcuts>> = {
  k: 'search',
  f: 'find',
  b: 'toggleSidebar',
  ',': 'settings',
}

function shortcutOf(event: KeyboardEvent): keyof Shortcuts | undefined {
  if (event.isComposing || event.defaultPrevented || document.querySelector('dialog[open]')) return undefined
  if (isInOpenList(event.target)) return undefined
  const key = event.key.toLowerCase()
  if (event.metaKey || event.ctrlKey) {
    if (event.altKey) return undefined
    if (event.shiftKey) return key === 'o' ? 'newChat' : undefined
    // From its own field, the key is the browser's again.
    if (key === 'f' && !isFindable(event.target)) return undefined
    return own(WITH_MODIFIER, key)
  }
  if (key === 'escape') return 'stop'
  if (event.altKey || isTyping(event.target)) return undefined
  return key === '/' ? 'focusComposer' : key === '?' ? 'help' : undefined
}

function isFindable(target: EventTarget | null): boolean {
  if (!document.querySelector('.thread')) return false
  return !(target instanceof Element && target.closest('.find-bar'))
}

/** An open list of models has keys of its own. */
function isInOpenList(target: EventTarget | null): boolean {
  const select = target instanceof Element ? target.closest('select') : null
  try {
    return select?.matches(':open') ?? false
  } catch {
    // A browser without that information keeps the keys of an open list from the page.
    return false
  }
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
}
