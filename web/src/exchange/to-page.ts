/**
 * A chat as one HTML file that can be sent to anyone: it has its styles and pictures inside, no script, and a policy that
 * lets it load nothing. Everything in it is escaped; Markdown is rendered without raw HTML.
 */
import { micromark } from 'micromark'
import { gfm, gfmHtml } from 'micromark-extension-gfm'
import { isLink, type MediaPart, sourceLabel, type TranscriptItem } from '../../../src/transcript/item.js'
import { isTooComplex, markdownBlocks } from '../state/markdown-blocks.js'
import { withTexAsCode } from '../state/math-pieces.js'
import style from './shared-page.css?raw'

export function toPage(title: string, items: readonly TranscriptItem[], variant?: string): string {
  const body = items.map(itemHtml).filter(Boolean).join('\n')
  const policy =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="${escaped(policy)}">
<title>${escaped(title)}</title>
<style>
${style}</style>
</head>
<body>
<header><h1 dir="auto">${escaped(title)}</h1></header>
<main>
${body}
</main>
<footer>A chat with Lango${variant === undefined ? '' : ` (${escaped(variant)})`}, saved on ${new Date().toISOString().slice(0, 10)}.</footer>
</body>
</html>
`
}

function itemHtml(item: TranscriptItem): string {
  switch (item.kind) {
    case 'user':
      return `<article class="user" aria-label="You">${item.media.map(mediaHtml).join('')}${
        item.text ? `<p dir="auto">${escaped(item.text)}</p>` : ''
      }</article>`
    case 'text':
      return `<article class="answer" dir="auto" aria-label="${escaped(item.author || 'Assistant')}">${markdownHtml(item.text)}</article>`
    case 'reasoning':
      return item.text === '' ? '' : folded('Reasoning', `<p dir="auto">${escaped(item.text)}</p>`)
    case 'tool':
      return folded(
        `<code>${escaped(item.name)}</code> <small>${escaped(item.status)}</small>`,
        block('Arguments', item.args) + (item.result === undefined ? '' : block('Result', item.result)),
      )
    case 'media':
      return mediaHtml(item.media)
    case 'sources':
      return `<ol class="sources">${item.sources.map(source => `<li>${sourceHtml(source)}</li>`).join('')}</ol>`
    case 'error':
      return `<p class="error">${escaped(item.error.message || item.error.code)}</p>`
    case 'mark':
      if (item.mark.type === 'transfer') return note(`${item.mark.from} hands over to ${item.mark.to}`)
      return item.mark.type === 'stopped' ? note('Stopped') : ''
    case 'footer':
      return item.model === undefined ? '' : note(item.model)
    default:
      return item satisfies never
  }
}

function note(text: string): string {
  return `<p class="note">${escaped(text)}</p>`
}

function folded(summary: string, content: string): string {
  return `<details><summary>${summary}</summary>${content}</details>`
}

function block(name: string, value: unknown): string {
  if (value === undefined) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  return `<p class="label">${name}</p><pre tabindex="0"><code>${escaped(text)}</code></pre>`
}

const PICTURE = /^image\/(png|jpeg|gif|webp)$/

function mediaHtml({ mimeType, data, name, url }: MediaPart): string {
  const label = name ?? url ?? mimeType
  if (data !== undefined && PICTURE.test(mimeType) && !/[^A-Za-z0-9+/=]/.test(data))
    return `<img src="data:${mimeType};base64,${data}" alt="${escaped(label)}">`
  return `<p class="file">${escaped(label)}</p>`
}

function sourceHtml(source: Parameters<typeof sourceLabel>[0]): string {
  const label = escaped(sourceLabel(source))
  return isLink(source.url)
    ? `<a href="${escaped(source.url)}" rel="noreferrer noopener">${label}</a>`
    : label
}

/** Blocks are rendered one by one, as in the chat: one that is too complex is shown as it is. */
function markdownHtml(text: string): string {
  return markdownBlocks(text)
    .map(part => {
      if (isTooComplex(part)) return `<p class="plain">${escaped(part)}</p>`
      const html = micromark(withTexAsCode(part), { extensions: [gfm()], htmlExtensions: [gfmHtml()] })
      // Text of the chat is escaped, so these tags are Markdown's own. What scrolls is reachable by keyboard.
      return (
        html
          .replaceAll('<table>', '<div class="table" tabindex="0"><table>')
          .replaceAll('</table>', '</table></div>')
          .replaceAll('<pre>', '<pre tabindex="0">')
          // A picture at an address would tell its server who reads this: it is a link, as in the chat.
          .replaceAll(/<img src="([^"]*)" alt="([^"]*)"[^>]*>/g, '<a href="$1">$2</a>')
          .replaceAll('<a href=', '<a rel="noreferrer noopener" href=')
          .replaceAll(/<input type="checkbox"[^>]*>/g, box => (box.includes('checked') ? '☑' : '☐'))
      )
    })
    .join('\n')
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, sign => ENTITIES[sign] ?? '')
}
