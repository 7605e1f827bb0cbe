import { useState } from 'react'
import { IconButton } from '../shared/icon-button.js'
import type { IconName } from '../shared/icons.js'
import { applyTheme, currentTheme, type Theme } from '../shared/theme.js'

const NEXT: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' }
const ICONS: Readonly<Record<Theme, IconName>> = { system: 'system', light: 'sun', dark: 'moon' }

/** The theme, with one click for the next. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(currentTheme)
  const change = () => {
    setTheme(NEXT[theme])
    applyTheme(NEXT[theme])
  }
  return <IconButton icon={ICONS[theme]} label={`Theme: ${theme}`} onClick={change} />
}
