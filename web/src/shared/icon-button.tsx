import type { ComponentProps } from 'react'
import { Icon, type IconName } from './icons.js'

interface IconButtonProps extends Omit<ComponentProps<'button'>, 'children'> {
  icon: IconName
  /** What it does: read aloud, and shown when the pointer rests on it. */
  label: string
}

/** A button that is only a drawing. */
export function IconButton({ icon, label, className = '', ...rest }: IconButtonProps) {
  return (
    <button type="button" title={label} aria-label={label} className={`icon-button ${className}`} {...rest}>
      <Icon name={icon} />
    </button>
  )
}
