/** A conversation as Markdown, for reading: the page's download and the terminal's `/export` write the same. */
import { isLink, sourceLabel, type TranscriptItem } from './item.js'

/** The items as paragraphs. Marks of runs, and what an answer cost, are left out. */
export function toMarkdown(items: readonly TranscriptItem[]): string {
  return items.flatMap(item => paragraph(item).map(text => `${text}\n\n`)).join('')
}

function paragraph(item: TranscriptItem): string[] {
  switch (item.kind) {
    case 'user':
      return [[`**You:** ${item.text}`, ...item.media.map(attached)].join('\n\n')]
    case 'text':
      return [`**${item.author || 'Assistant'}:** ${item.text}`]
    case 'reasoning':
      return item.text === '' ? [] : [item.text.replaceAll(/^/gm, '> ')]
    case 'tool': {
      const result = item.result === undefined ? item.status : jsonText(item.result)
      return [`- ${code(`${item.name}(${jsonText(item.args ?? {})})`)} → ${code(result)}`]
    }
    case 'media':
      return [attached(item.media)]
    case 'sources':
      return [
        item.sources
          .map((source, at) => {
            const label = sourceLabel(source).replaceAll(/[[\]\\]/g, '\\$&')
            return `${at + 1}. ${isLink(source.url) ? `[${label}](<${encodeURI(source.url)}>)` : label}`
          })
          .join('\n'),
      ]
    case 'error':
      return [`_${item.error.message || item.error.code}_`]
    case 'mark':
      if (item.mark.type === 'transfer') return [`_${item.mark.from} hands over to ${item.mark.to}_`]
      return item.mark.type === 'stopped' ? ['_stopped_'] : []
    case 'footer':
      return []
    default:
      return item satisfies never
  }
}

function attached({ name, mimeType }: { name?: string; mimeType: string }): string {
  return `_Attached: ${name ?? mimeType}_`
}

/** A value on one line; a text as it is. */
function jsonText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** A longer fence than any inside keeps backticks what they are. */
function code(text: string): string {
  const line = text.replaceAll(/\s*\n\s*/g, ' ')
  const longest = Math.max(0, ...(line.match(/`+/g) ?? []).map(run => run.length))
  const fence = '`'.repeat(longest + 1)
  return longest > 0 ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`
}
