import { useState } from 'react'
import { IconButton } from '../shared/icon-button.js'
import type { IconName } from '../shared/icons.js'
import { writeStored } from '../shared/stored.js'

type Theme = 'system' | 'light' | 'dark'

const NEXT: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' }
const ICONS: Readonly<Record<Theme, IconName>> = { system: 'system', light: 'sun', dark: 'moon' }

/** Light, dark, or as the system has it. `theme.js` reads the choice before the first paint. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(currentTheme)
  const change = () => {
    const next = NEXT[theme]
    setTheme(next)
    if (next === 'system') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = next
    writeStored('lango-theme', next === 'system' ? undefined : next)
  }
  return <IconButton icon={ICONS[theme]} label={`Theme: ${theme}`} onClick={change} />
}

function currentTheme(): Theme {
  const { theme } = document.documentElement.dataset
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}
