/** Small drawings in one line weight; they take the colour of the text around them. */
import type { ReactNode } from 'react'

const PATHS = {
  bookmark: <path d="M4.5 2.75h7v10.5L8 10.5l-3.5 2.75z" />,
  coin: (
    <>
      <circle cx="8" cy="8" r="5.6" />
      <path d="M9.8 6.1C9.4 5.5 8.8 5.2 8 5.2c-1 0-1.8.5-1.8 1.4 0 2 3.7.8 3.7 2.8 0 .9-.8 1.4-1.9 1.4-.9 0-1.6-.3-2-1M8 4.2v7.6" />
    </>
  ),
  plus: <path d="M8 3v10M3 8h10" />,
  search: (
    <>
      <circle cx="7" cy="7" r="4.25" />
      <path d="m10.2 10.2 3.3 3.3" />
    </>
  ),
  panel: (
    <>
      <rect x="2" y="2.75" width="12" height="10.5" rx="2.25" />
      <path d="M6.25 2.75v10.5" />
    </>
  ),
  more: <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" strokeWidth="2.4" />,
  pencil: <path d="m10.6 3.2 2.2 2.2-7.4 7.4-2.9.7.7-2.9z" />,
  fork: (
    <>
      <circle cx="4.5" cy="3.5" r="1.5" />
      <circle cx="11.5" cy="3.5" r="1.5" />
      <circle cx="8" cy="12.5" r="1.5" />
      <path d="M4.5 5v.8C4.5 8.2 8 7.8 8 11M11.5 5v.8C11.5 8.2 8 7.8 8 11" />
    </>
  ),
  trash: <path d="M3 4.5h10M6.2 4.3V2.8h3.6v1.5M4.3 4.5l.6 8.7h6.2l.6-8.7M6.8 7v3.8M9.2 7v3.8" />,
  send: <path d="M8 13V3.5M3.8 7.6 8 3.4l4.2 4.2" />,
  stop: <rect x="4.25" y="4.25" width="7.5" height="7.5" rx="1.5" fill="currentColor" stroke="none" />,
  clip: (
    <path d="m13 7.6-5.3 5.2a3.3 3.3 0 0 1-4.7-4.7l5.6-5.5a2.2 2.2 0 0 1 3.1 3.1L6.2 11a1 1 0 0 1-1.5-1.5l4.9-4.8" />
  ),
  copy: (
    <>
      <rect x="5.5" y="5.5" width="7.75" height="7.75" rx="1.75" />
      <path d="M10.5 5.3V4.4a1.7 1.7 0 0 0-1.7-1.7H4.4a1.7 1.7 0 0 0-1.7 1.7v4.4a1.7 1.7 0 0 0 1.7 1.7h.9" />
    </>
  ),
  check: <path d="m3.2 8.6 3 3 6.6-7" />,
  close: <path d="m4 4 8 8M12 4l-8 8" />,
  chevron: <path d="m6 4 4 4-4 4" />,
  up: <path d="M8 13V3M3.8 7.2 8 3l4.2 4.2" />,
  share: <path d="M8 9.8V2.4M5.2 5 8 2.2 10.8 5M3 8.6v4.6h10V8.6" />,
  import: <path d="M8 2.4v7.4M5.2 7.2 8 10l2.8-2.8M3 8.6v4.6h10V8.6" />,
  down: <path d="M8 3v10M3.8 8.8 8 13l4.2-4.2" />,
  retry: <path d="M13 8a5 5 0 1 1-1.6-3.7M13 2.6v2.6h-2.6" />,
  tool: (
    <path d="M9.8 2.8a3.4 3.4 0 0 0-3.5 4.7l-3.6 3.6a1.4 1.4 0 0 0 2 2l3.7-3.6a3.4 3.4 0 0 0 4.6-4.2L11 7.2 9 6.9l-.4-2z" />
  ),
  lens: (
    <>
      <path d="M2.6 5.2V4a1.4 1.4 0 0 1 1.4-1.4h1.2M10.8 2.6H12A1.4 1.4 0 0 1 13.4 4v1.2M13.4 10.8V12a1.4 1.4 0 0 1-1.4 1.4h-1.2M5.2 13.4H4A1.4 1.4 0 0 1 2.6 12v-1.2" />
      <circle cx="8" cy="8" r="2.3" />
    </>
  ),
  shield: <path d="M8 2.3 13 4v4c0 3-2.1 4.9-5 5.9C5.1 12.9 3 11 3 8V4zM5.8 8l1.6 1.6L10.4 6.6" />,
  warning: <path d="M8 2.8 14 13H2zM8 6.6v3M8 11.3v.01" />,
  info: (
    <>
      <circle cx="8" cy="8" r="5.6" />
      <path d="M8 7.4v3.3M8 5.2v.01" />
    </>
  ),
  clock: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 5v3.2l2.2 1.4" />
    </>
  ),
  question: (
    <>
      <circle cx="8" cy="8" r="5.7" />
      <path d="M6.3 6.4a1.75 1.75 0 1 1 2.5 1.6c-.5.3-.8.6-.8 1.2M8 11.1v.01" />
    </>
  ),
  transfer: <path d="M2.8 5.5h9.6M9.8 2.9l2.6 2.6-2.6 2.6M13.2 11H3.6M6.2 8.6 3.6 11l2.6 2.6" />,
  cut: (
    <>
      <circle cx="4.2" cy="4.4" r="1.7" />
      <circle cx="4.2" cy="11.6" r="1.7" />
      <path d="M5.7 5.4 13.2 11M5.7 10.6 13.2 5" />
    </>
  ),
  spark: <path d="M8 2.4 9.3 6.7 13.6 8 9.3 9.3 8 13.6 6.7 9.3 2.4 8l4.3-1.3z" />,
  sun: (
    <>
      <circle cx="8" cy="8" r="2.7" />
      <path d="M8 1.8v1.4M8 12.8v1.4M1.8 8h1.4M12.8 8h1.4M3.6 3.6l1 1M11.4 11.4l1 1M3.6 12.4l1-1M11.4 4.6l1-1" />
    </>
  ),
  moon: <path d="M13 9.6A5.4 5.4 0 0 1 6.4 3 5.4 5.4 0 1 0 13 9.6z" />,
  system: (
    <>
      <rect x="2.2" y="3" width="11.6" height="8" rx="1.5" />
      <path d="M5.6 13.4h4.8" />
    </>
  ),
  keyboard: (
    <>
      <rect x="1.8" y="4" width="12.4" height="8" rx="1.6" />
      <path d="M4.3 6.6h.01M6.8 6.6h.01M9.2 6.6h.01M11.7 6.6h.01M5 9.4h6" />
    </>
  ),
  settings: (
    <>
      <path d="M2.5 4.6h5.2M11.3 4.6h2.2M2.5 11.4h2.2M8.3 11.4h5.2" />
      <circle cx="9.5" cy="4.6" r="1.7" />
      <circle cx="6.5" cy="11.4" r="1.7" />
    </>
  ),
  file: <path d="M4 2.3h5L12.3 5.6v8.1H4zM8.8 2.5v3.3h3.3" />,
} satisfies Record<string, ReactNode>

export type IconName = keyof typeof PATHS

/** One of the drawings. The element around it has the label. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      aria-hidden="true"
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      {PATHS[name]}
    </svg>
  )
}

/** Two links of a chain: a history that holds. */
export function Logo({ size = 24 }: { size?: number }) {
  return (
    <svg aria-hidden="true" className="logo" width={size} height={size} viewBox="0 0 32 32">
      <rect width="32" height="32" rx="9" className="logo-ground" />
      <g fill="none" className="logo-links" strokeWidth="2.4" strokeLinecap="round">
        <path d="M15.6 20.2A5 5 0 0 1 13.4 21h-3a5 5 0 0 1 0-10h3a5 5 0 0 1 4.4 7.4" />
        <path d="M16.4 11.8A5 5 0 0 1 18.6 11h3a5 5 0 0 1 0 10h-3a5 5 0 0 1-4.4-7.4" />
      </g>
    </svg>
  )
}
