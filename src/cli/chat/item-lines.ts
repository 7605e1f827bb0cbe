/** One item of the transcript as lines of at most `width` columns. All texts of others become plain here. */

import {
  type Component,
  Markdown,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi,
} from '@earendil-works/pi-tui'
import type { Source } from '../../session/sources.js'
import { OUTCOME_WORDS, sourceLabel, type ToolItem, type ToolStatus } from '../../transcript/item.js'
import { plainLine, plainText } from '../plain-text.js'
import { count } from '../wording.js'
import { type ChatItem, mediaText, type NoticeTone } from './chat-item.js'
import type { ChatState } from './chat-state.js'
import { formatArguments, formatDuration, formatResult } from './format.js'
import { markdownTheme, type Paint, type Theme } from './theme.js'

/** What decides how an item looks, besides itself. */
export interface ItemView {
  width: number
  showReasoning: boolean
  /** The root agent, whose name needs no mention. */
  agent: string
}

/** Longer lines are hard to read; tables and code may still use them up to here. */
const READABLE = 120
/** What is shown of a single text. The store has all of it. */
const MOST_CHARACTERS = 200_000

export function itemLines(item: ChatItem, theme: Theme, view: ItemView): string[] {
  switch (item.kind) {
    case 'user':
      return hanging(theme.accent(theme.bold('› ')), limited(item.text), view.width, theme.bold)
    case 'text':
      return answerLines(item, theme, view)
    case 'reasoning':
      return reasoningLines(item, theme, view)
    case 'tool':
      return toolLines(item, theme, view.width)
    case 'sources':
      return sourceLines(item.sources, theme, view.width)
    case 'notice':
      return noticeLines(item.tone, item.text, theme, view.width)
    case 'panel':
      return [
        `  ${theme.bold(plainLine(item.title))}`,
        ...item.lines.flatMap(line => panelLines(plainText(line).trimEnd(), view.width)),
      ]
  }
}

function answerLines(item: ChatItem & { kind: 'text' }, theme: Theme, view: ItemView): string[] {
  const width = Math.min(view.width, READABLE)
  const padding = width > 20 ? 2 : 0
  const look = markdownTheme(theme, line => wrap(line, width - 2 * padding - 2))
  const lines = new Markdown(limited(item.text), padding, 0, look).render(width)
  const speaker =
    item.author === '' || item.author === view.agent || view.agent === ''
      ? []
      : [`  ${theme.dim(plainLine(item.author))}`]
  return [...speaker, ...lines.map(line => line.trimEnd())]
}

function reasoningLines(item: ChatItem & { kind: 'reasoning' }, theme: Theme, view: ItemView): string[] {
  const text = limited(item.text).trim()
  if (view.showReasoning) {
    const width = Math.min(view.width, READABLE)
    return [
      `  ${theme.dim('✻ reasoning')}`,
      ...hanging('    ', text, width, part => theme.dim(theme.italic(part))),
    ]
  }
  const words = count(text.split(/\s+/).length, 'word')
  return [
    clip(
      `  ${theme.dim(`✻ ${item.streaming ? 'reasoning…' : 'reasoning'} ${words} · Ctrl-R shows it`)}`,
      view.width,
    ),
  ]
}

function toolLines(item: ChatItem & { kind: 'tool' }, theme: Theme, width: number): string[] {
  const icon = ICONS[item.status]
  const paint = paintOf(item.status, theme)
  const facts = [
    ...(item.durationMs === undefined ? [] : [formatDuration(item.durationMs)]),
    ...(item.status === 'waiting' ? ['waits for you'] : []),
    ...(item.status === 'pending' ? ['waits outside the run'] : []),
    ...(item.status === 'unanswered' ? ['no answer'] : []),
    ...(item.status === 'unknown' ? ['outcome unknown'] : []),
    ...(item.outcome?.asks ? ['waits for you'] : []),
    ...(item.outcome?.answer === undefined ? [] : [`answered: ${OUTCOME_WORDS[item.outcome.answer]}`]),
    ...(item.approval === undefined ? [] : [APPROVALS[item.approval]]),
  ]
  const name = plainLine(item.name)
  const right = facts.length > 0 ? ` · ${facts.join(' · ')}` : ''
  const room = width - visibleWidth(name) - visibleWidth(right) - 6
  const args = truncateToWidth(formatArguments(item.args), Math.max(3, room), '…')
  const call = `  ${paint(icon)} ${theme.bold(name)}(${unstyled(args)})${theme.dim(right)}`
  if (item.status === 'unknown' && item.result === undefined && !item.outcome?.asks)
    return [
      clip(call, width),
      ...hanging(`    ${theme.dim('→')} `, STARTED, Math.min(width, READABLE), theme.dim),
    ]
  const result = item.result === undefined ? '' : plainLine(limited(formatResult(item.result)))
  const media = (item.media ?? []).map(one => clip(`      ${theme.dim(plainLine(mediaText(one)))}`, width))
  if (result === '') return [clip(call, width), ...media]
  const shown = unstyled(truncateToWidth(result, Math.max(8, Math.min(width, READABLE) - 6), '…'))
  return [
    clip(call, width),
    clip(`    ${theme.dim('→')} ${item.status === 'failed' ? theme.bad(shown) : theme.dim(shown)}`, width),
    ...media,
  ]
}

/** A number, a title and an address for each source; on a narrow screen the address has a line of its own. */
function sourceLines(sources: readonly Source[], theme: Theme, width: number): string[] {
  const lines = sources.flatMap((source, index) => {
    const number = theme.dim(`  ${String(index + 1).padStart(String(sources.length).length)} `)
    const title = plainLine(sourceLabel(source))
    const url = plainLine(source.url)
    const room = width - visibleWidth(number)
    if (source.title === undefined) return [clip(`${number}${theme.accent(url)}`, width)]
    if (visibleWidth(title) + visibleWidth(url) + 2 <= room)
      return [`${number}${title}  ${theme.accent(url)}`]
    const indent = ' '.repeat(visibleWidth(number))
    return [
      clip(`${number}${title}`, width),
      ...wrap(url, room).map(part => `${indent}${theme.accent(part)}`),
    ]
  })
  return [`  ${theme.dim('sources')}`, ...lines]
}

function paintOf(status: ToolStatus, theme: Theme): Paint {
  if (status === 'failed') return theme.bad
  if (status === 'unknown') return theme.notable
  return status === 'done' ? theme.good : theme.accent
}

const STARTED = 'it was started, and it is not known whether it took effect'

const ICONS: Readonly<Record<ToolStatus, string>> = {
  running: '◦',
  waiting: '?',
  pending: '…',
  done: '✓',
  failed: '✗',
  unanswered: '■',
  unknown: '?',
}

const APPROVALS: Readonly<Record<NonNullable<ToolItem['approval']>, string>> = {
  once: 'allowed once',
  always: 'always allowed',
  no: 'refused',
  timeout: 'nobody answered',
  aborted: 'not answered',
}

/** A line about what happened, with a sign for how much it matters. */
function noticeLines(tone: NoticeTone, text: string, theme: Theme, width: number): string[] {
  const [sign, paint] = {
    quiet: ['·', theme.dim] as const,
    warning: ['!', theme.notable] as const,
    error: ['✗', theme.bad] as const,
  }[tone]
  return hanging(`  ${paint(sign)} `, limited(text).trim(), Math.min(width, READABLE), paint)
}

/** Lines of a table wrap under their second column, or, where that is too far right, a little further in. */
function panelLines(line: string, width: number): string[] {
  if (line === '') return ['']
  const column = /^\s*\S+(?: \S+)*\s{2,}/.exec(line)?.[0] ?? ''
  const start = /^\s*/.exec(line)?.[0] ?? ''
  if (column !== '' && column.length < width / 2) {
    return hanging(`  ${column}`, line.slice(column.length), width, text => text)
  }
  const [first = '', ...rest] = wrap(line.trimStart(), width - start.length - 6)
  return [`  ${start}${first}`, ...rest.map(part => `  ${start}    ${part}`)]
}

/** Text after a sign; further lines stand under the first. Each line is painted by itself. */
export function hanging(sign: string, text: string, width: number, paint: Paint): string[] {
  const indent = visibleWidth(sign)
  if (width <= indent + 4) return wrap(text, width).map(line => clip(paint(line), width))
  return wrap(text, width - indent).map(
    (line, index) => (index === 0 ? sign : ' '.repeat(indent)) + paint(line),
  )
}

function wrap(text: string, width: number): string[] {
  return text.split('\n').flatMap(line => (line === '' ? [''] : wrapTextWithAnsi(line, Math.max(1, width))))
}

/** A line that is too wide for the terminal would end the program. */
export function clip(line: string, width: number): string {
  return visibleWidth(line) > width ? truncateToWidth(line, width, width > 4 ? '…' : '') : line
}

/** `truncateToWidth` resets all styles after what it cuts; inside a painted text that would end the paint. */
function unstyled(text: string): string {
  return text.replaceAll('\u001b[0m', '')
}

function limited(text: string): string {
  const shown = text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text
  return plainText(shown)
}

/** All items of the chat. Lines are kept for each item until it, or the view of it, changes. */
export class Transcript implements Component {
  readonly #state: () => ChatState
  readonly #theme: Theme
  #kept = new Map<number, { item: ChatItem; lines: string[] }>()
  #view = ''

  constructor(state: () => ChatState, theme: Theme) {
    this.#state = state
    this.#theme = theme
  }

  invalidate(): void {
    this.#kept.clear()
  }

  render(width: number): string[] {
    const { header, items, showReasoning, agent } = this.#state()
    const view = `${width} ${showReasoning} ${agent}`
    if (view !== this.#view) this.#kept.clear()
    this.#view = view
    const kept = new Map<number, { item: ChatItem; lines: string[] }>()
    const lines = header.flatMap(text => noticeLines('quiet', text, this.#theme, width))
    let before: ChatItem | undefined
    for (const item of items) {
      const known = this.#kept.get(item.id)
      const own =
        known?.item === item
          ? known.lines
          : // Measured once, and not with every frame: pi-tui ends the program over a line that is too wide.
            itemLines(item, this.#theme, { width, showReasoning, agent }).map(line => clip(line, width))
      kept.set(item.id, { item, lines: own })
      if (needsSpace(before, item) && lines.length > 0) lines.push('')
      for (const line of own) lines.push(line)
      before = item
    }
    this.#kept = kept
    return lines
  }
}

/** Small things stand together; what people and models say has air around it. */
function needsSpace(before: ChatItem | undefined, item: ChatItem): boolean {
  return !(before && isSmall(before) && isSmall(item))
}

function isSmall({ kind }: ChatItem): boolean {
  return kind === 'tool' || kind === 'notice' || kind === 'reasoning'
}
