/**
 * Draws diagrams in a hidden frame, loaded with the first one. Mermaid needs inline styles, which this page refuses,
 * and what it draws was written by a model: so the frame is sandboxed, with no origin and no network, and what
 * comes back is shown as a picture, in which no script runs.
 */
import { diagramPage } from '../../diagram/draw.js?page'

export interface DrawnDiagram {
  address: string
  width: number
  height: number
  /** Mermaid's name of the kind, such as `sequence`. */
  type: string
}

type Answer = { svg: string; width: number; height: number; type: string } | { problem: string }

/** A source that keeps the frame busy for longer is shown as it is. */
const PATIENCE_MS = 30_000
/** Rows that leave the screen are drawn again when they return. */
const MOST_KEPT = 60

const drawn = new Map<string, Promise<DrawnDiagram>>()
let frame: Promise<HTMLIFrameElement> | undefined

/** The diagram as a picture. Rejects with what is wrong with the source. */
export function drawDiagram(source: string, isDark: boolean): Promise<DrawnDiagram> {
  const key = `${isDark ? 'dark' : 'light'}:${source}`
  const known = drawn.get(key)
  if (known) return known
  const made = ask(source, isDark)
  drawn.set(key, made)
  const [oldest] = drawn.keys()
  if (drawn.size > MOST_KEPT && oldest !== undefined) {
    void drawn.get(oldest)?.then(
      ({ address }) => URL.revokeObjectURL(address),
      () => {},
    )
    drawn.delete(oldest)
  }
  return made
}

async function ask(source: string, isDark: boolean): Promise<DrawnDiagram> {
  frame ??= openFrame()
  const { contentWindow } = await frame
  const { port1, port2 } = new MessageChannel()
  const answer = await within(
    new Promise<Answer>(resolve => {
      port1.onmessage = ({ data }: MessageEvent<Answer>) => resolve(data)
      contentWindow?.postMessage({ source, isDark }, '*', [port2])
    }),
  ).finally(() => port1.close())
  if ('problem' in answer) return Promise.reject(new TypeError(answer.problem))
  const { svg, ...rest } = answer
  return { ...rest, address: URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' })) }
}

function openFrame(): Promise<HTMLIFrameElement> {
  const element = document.createElement('iframe')
  element.className = 'diagram-frame'
  element.title = 'Draws diagrams'
  element.tabIndex = -1
  element.setAttribute('aria-hidden', 'true')
  element.setAttribute('sandbox', 'allow-scripts')
  element.src = diagramPage
  const ready = new Promise<HTMLIFrameElement>(resolve => {
    const onMessage = ({ source }: MessageEvent) => {
      if (source !== element.contentWindow) return
      removeEventListener('message', onMessage)
      resolve(element)
    }
    addEventListener('message', onMessage)
  })
  document.body.append(element)
  return within(ready)
}

/** After a frame that does not answer, the next diagram gets a new one. */
async function within<Value>(work: Promise<Value>): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      for (const element of document.querySelectorAll('.diagram-frame')) element.remove()
      frame = undefined
      reject(new TypeError('It took too long.'))
    }, PATIENCE_MS)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
