/** The shared transcript as the terminal shows it: text, calls, and everything else as one quiet line. */

import { CONFIRMATION_TOOL } from '../../base/names.js'
import type { HistoryCut } from '../../session/message.js'
import type { Source } from '../../session/sources.js'
import {
  type Mark,
  type MediaPart,
  missingText,
  type ReasoningItem,
  resumedText,
  switchText,
  type TextItem,
  type ToolItem,
  type TranscriptItem,
  waitText,
} from '../../transcript/item.js'
import { breakText } from '../../transcript/receipt-marks.js'
import { stepTitle } from '../../transcript/repair-words.js'
import { count, localTime } from '../wording.js'
import { formatBytes, formatCount } from './format.js'

/** One thing on the screen. Its texts are those of models, tools and people; they are made plain when shown. */
export type ChatItem = ChatItemBody & {
  readonly id: number
  /** Of the transcript item that it shows, while its run lasts. */
  readonly key?: string
  /** Where in the text of that item it begins; absent: at its start. */
  readonly from?: number
}

export type ChatItemBody =
  | { readonly kind: 'user'; readonly text: string }
  | Body<TextItem>
  | Body<ReasoningItem>
  | Body<ToolItem>
  /** Where the answer comes from. */
  | { readonly kind: 'sources'; readonly sources: readonly Source[] }
  | { readonly kind: 'notice'; readonly tone: NoticeTone; readonly text: string }
  /** The output of a command: lines that keep their spaces. */
  | { readonly kind: 'panel'; readonly title: string; readonly lines: readonly string[] }

type Body<Item extends TranscriptItem> = Omit<Item, 'key'>

export type NoticeTone = 'quiet' | 'warning' | 'error'

/** What the terminal shows of a transcript item. */
export function chatItemsOf(item: TranscriptItem): ChatItemBody[] {
  switch (item.kind) {
    case 'user': {
      const text: ChatItemBody[] = item.text.trim() === '' ? [] : [{ kind: 'user', text: item.text }]
      return [...text, ...item.media.map(mediaLine)]
    }
    case 'text':
    case 'tool': {
      const { key: _key, ...body } = item
      return [body]
    }
    case 'reasoning': {
      const { key: _key, ...body } = item
      return item.text.trim() === '' ? [] : [body]
    }
    case 'sources':
      return [{ kind: 'sources', sources: item.sources }]
    case 'media':
      return [mediaLine(item.media)]
    case 'mark': {
      const text = markText(item.mark)
      return text === undefined ? [] : [quiet(text)]
    }
    case 'error':
      return [{ kind: 'notice', tone: 'error', text: item.error.message || item.error.code }]
    case 'footer':
      return []
    default:
      return item satisfies never
  }
}

/** A terminal shows no pictures: what it is, how large, and how to see it. */
function mediaLine(media: MediaPart): ChatItemBody {
  return quiet(mediaText(media))
}

export function mediaText({ name, mimeType, data, url }: MediaPart): string {
  const kind = mimeType.startsWith('image/') ? 'picture' : 'file'
  const what = [name, mimeType, data === undefined ? undefined : formatBytes(base64Bytes(data))]
  const where = data === undefined ? (url ?? '') : '/save writes it to a file'
  return `${kind}: ${[...what, where].filter(Boolean).join(' · ')}`
}

function base64Bytes(data: string): number {
  return Math.floor((data.replace(/=+$/, '').length * 3) / 4)
}

function quiet(text: string): ChatItemBody {
  return { kind: 'notice', tone: 'quiet', text }
}

/** A mark in one line; `undefined` for what the chat asks its user by itself. */
function markText(mark: Mark): string | undefined {
  switch (mark.type) {
    case 'transfer':
      return `${mark.from} hands over to ${mark.to}`
    case 'question':
      return mark.call === CONFIRMATION_TOOL ? undefined : `${mark.call} waits for an answer`
    case 'warning':
      return `turn ${mark.turns} of ${mark.maxTurns}: the run is near its limit`
    case 'wrap-up':
      return wrapUpText(mark)
    case 'model-switch':
      return switchText(mark)
    case 'model-wait':
      return waitText(mark)
    case 'tools-missing':
      return missingText(mark)
    case 'repair':
      return repairText(mark)
    case 'break':
      return breakText(mark.breaks)
    case 'history-cut':
      return [...new Set(mark.cuts.map(cutText))].join('\n')
    case 'queued':
      // The activity line says it, for as long as it holds.
      return undefined
    case 'scheduled':
      return `not before ${localTime(mark.dueAt)}`
    case 'resumed':
      return resumedText(mark)
    case 'stopped':
      return 'stopped'
    case 'note':
      return mark.text
    default:
      return mark satisfies never
  }
}

function wrapUpText({ reason, turns, maxTurns }: Extract<Mark, { type: 'wrap-up' }>): string {
  if (reason === 'turn-limit') return `turn ${turns} of ${maxTurns} is used: one last answer, without tools`
  if (reason === 'delegation-limit')
    return 'too many transfers between agents: one last answer, without tools'
  if (reason === 'budget') return 'the budget is used up: one last answer, without tools'
  return 'the same call was repeated: one last answer, without tools'
}

function repairText({ profile, repairs }: Extract<Mark, { type: 'repair' }>): string {
  const counts = new Map<string, number>()
  for (const { step } of repairs) counts.set(step, (counts.get(step) ?? 0) + 1)
  const steps = [...counts].map(([step, times]) => {
    const title = stepTitle(step).toLowerCase()
    return times === 1 ? title : `${title} (${times})`
  })
  return `history repaired for ${profile}: ${steps.join(', ')} · /inspect`
}

function cutText(cut: HistoryCut): string {
  const found: string[] = []
  if (cut.messages > 0) {
    const limit =
      cut.reason === 'token-budget' && cut.budgetTokens !== undefined
        ? `to fit ${formatCount(cut.budgetTokens)} tokens`
        : `to keep ${cut.maxMessages ?? cut.keptMessages} messages`
    found.push(`${count(cut.messages, 'older message')} left out ${limit}`)
  }
  if (cut.shortened.length > 0) found.push(`${count(cut.shortened.length, 'tool output')} shortened`)
  return `${found.join(', ') || 'history truncated'} · /inspect`
}
