// Markdown to pages: headings with addresses, links between pages, coloured code, a list of all pages, and an index
// for the search. Only what the build imports; the server sends the files.
import { posix } from 'node:path'
import hljs from 'highlight.js/lib/common'
import { micromark } from 'micromark'
import { gfm, gfmHtml } from 'micromark-extension-gfm'

/** All files of the documentation, and llms.txt. */
export async function renderPages(pages, read) {
  const navigation = navigationOf(read('docs/README.md'), pages)
  const files = new Map()
  const index = []
  for (const page of pages) {
    const text = withoutComments(read(page.file))
    const { html, title, sections } = renderPage(text, page, pages)
    for (const section of sections) index.push({ page: page.name, title, ...section })
    files.set(`${page.name}.html`, shell({ page, title, html, sections, navigation }))
  }
  const decisions = pages.filter(({ name }) => name.startsWith('adr/'))
  const list = decisions.map(page => {
    const title = titleOf(withoutComments(read(page.file))) || page.name
    return `<li><a href="/docs/${page.name}">${toHtml(title)}</a></li>`
  })
  const html = `<h1>Decisions</h1><p>One page for each design decision, with its reasons.</p><ul>${list.join('')}</ul>`
  files.set('adr.html', shell({ page: { name: 'adr' }, title: 'Decisions', html, sections: [], navigation }))
  files.set('search.json', JSON.stringify(index))
  return { files, llms: llmsText(navigation, read('README.md')) }
}

/** The page that a link leads to, or undefined when it leads out of the documentation. */
export function linkTarget(from, href, pages) {
  if (/^([a-z]+:|#|\/)/i.test(href)) return href
  const [path = '', anchor] = href.split('#')
  const file = posix.normalize(posix.join(posix.dirname(from), path))
  const suffix = anchor === undefined ? '' : `#${anchor}`
  if (file.startsWith('docs/images/')) return `/docs/images/${file.slice('docs/images/'.length)}`
  if (/^docs\/adr\/?$/.test(file)) return '/docs/adr'
  const page = pages.find(each => each.file === file)
  return page && `/docs${page.name === 'index' ? '' : `/${page.name}`}${suffix}`
}

function renderPage(text, page, pages) {
  const title = titleOf(text)
  const raw = micromark(text, {
    extensions: [gfm()],
    htmlExtensions: [gfmHtml()],
    allowDangerousHtml: true,
  })
  const slugs = new Map()
  const html = raw
    .replaceAll(/<h([1-4])>(.*?)<\/h\1>/gs, (_all, level, inner) => {
      const id = slugOf(plain(inner), slugs)
      return `<h${level} id="${id}"><a class="anchor" href="#${id}">${inner}</a></h${level}>`
    })
    .replaceAll(/<a href="([^"]*)">(.*?)<\/a>/gs, (all, href, inner) => {
      if (all.includes('class="anchor"')) return all
      const target = linkTarget(page.file, fromHtml(href), pages)
      // Sources are not served: their names stay.
      return target === undefined ? inner : `<a href="${toHtml(target)}">${inner}</a>`
    })
    .replaceAll(/(src|srcset)="(?!https?:|\/)([^"]*)"/g, (all, name, href) => {
      const target = linkTarget(page.file, href, pages)
      return target === undefined ? all : `${name}="${target}"`
    })
    .replaceAll(/<pre><code class="language-([\w-]+)">(.*?)<\/code><\/pre>/gs, (_all, language, code) => {
      return `<pre tabindex="0"><code class="language-${language}">${coloured(fromHtml(code), language)}</code></pre>`
    })
    .replaceAll('<pre><code>', '<pre tabindex="0"><code>')
    .replaceAll('<table>', '<div class="table" tabindex="0" role="region" aria-label="Table"><table>')
    .replaceAll('</table>', '</table></div>')
  return { html, title, sections: sectionsOf(html) }
}

/** The texts between two headings, for the search. */
function sectionsOf(html) {
  return [...html.matchAll(/<h([1-4]) id="([^"]*)">(.*?)<\/h\1>(.*?)(?=<h[1-4] id=|$)/gs)].map(
    ([, level, id, heading, body]) => ({
      level: Number(level),
      id,
      heading: plain(heading),
      text: plain(body).slice(0, 2000),
    }),
  )
}

/** The groups and pages of docs/README.md, in its order. */
function navigationOf(text, pages) {
  const groups = []
  for (const line of text.slice(text.indexOf('## All pages')).split('\n')) {
    const group = /^\*\*(.+)\*\*$/.exec(line)?.[1]
    if (group) groups.push({ group, pages: [] })
    const [, title, href, about = ''] = /^- \[([^\]]+)\]\(([^)]+)\)(?:: (.*))?$/.exec(line) ?? []
    if (title) groups.at(-1)?.pages.push({ title, href: linkTarget('docs/README.md', href, pages), about })
  }
  return groups
}

function shell({ page, title, html, sections, navigation }) {
  const here = page.name === 'index' ? '/docs' : `/docs/${page.name}`
  const item = ({ title: name, href }) =>
    `<li><a href="${href}"${href === here ? ' aria-current="page"' : ''}>${toHtml(name)}</a></li>`
  const groups = navigation.map(
    ({ group, pages }) => `<h2>${toHtml(group)}</h2><ul>${pages.map(item).join('')}</ul>`,
  )
  const inner = sections.filter(({ level }) => level === 2)
  const onPage =
    inner.length < 2
      ? ''
      : `<nav class="on-page" aria-label="On this page"><h2>On this page</h2><ul>${inner
          .map(({ id, heading }) => `<li><a href="#${id}">${toHtml(heading)}</a></li>`)
          .join('')}</ul></nav>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${toHtml(title)} · Lango</title>
<link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/docs/docs.css">
<script src="/theme.js"></script>
<script src="/docs/docs.js" defer></script>
</head>
<body class="docs">
<a class="skip" href="#content">Skip to the text</a>
<header class="docs-head">
<a class="docs-brand" href="/docs">Lango <span>documentation</span></a>
<label class="docs-search"><span class="visually-hidden">Search the documentation</span>
<input id="search" type="search" placeholder="Search (press /)" autocomplete="off" role="combobox" aria-expanded="false" aria-controls="found"></label>
<a class="docs-chat" href="/">Open the chat</a>
<div id="found" class="docs-found" role="listbox" aria-label="Found" hidden></div>
</header>
<div class="docs-body">
<nav class="docs-nav" aria-label="Documentation"><details open><summary>All pages</summary>${groups.join('')}</details></nav>
<main id="content" class="markdown">${html}</main>
${onPage}
</div>
</body>
</html>
`
}

/** What programs read first: https://llmstxt.org. */
function llmsText(navigation, readme) {
  const summary = /^\*\*(.+)\*\*$/m.exec(readme)?.[1] ?? ''
  const groups = navigation.map(({ group, pages }) => {
    const lines = pages.map(({ title, href, about }) => `- [${title}](${href})${about ? `: ${about}` : ''}`)
    return `## ${group}\n\n${lines.join('\n')}`
  })
  return `# Lango\n\n> ${summary}\n\n${groups.join('\n\n')}\n`
}

function coloured(code, language) {
  const name = { sh: 'bash', jsonl: 'json' }[language] ?? language
  return hljs.getLanguage(name) ? hljs.highlight(code, { language: name }).value : toHtml(code)
}

/** As GitHub makes them, so that links work in both places. */
export function slugOf(text, taken) {
  const base = text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
  const times = taken.get(base) ?? 0
  taken.set(base, times + 1)
  return times === 0 ? base : `${base}-${times}`
}

function titleOf(text) {
  const heading = /^# (.+)$/m.exec(text)?.[1] ?? ''
  return heading.replaceAll(/[`*]|\[|\]\([^)]*\)/g, '')
}

function withoutComments(text) {
  return text.replaceAll(/<!--.*?-->\n?/gs, '')
}

function plain(html) {
  return fromHtml(html.replaceAll(/<[^>]*>/g, ' '))
    .replaceAll(/\s+/g, ' ')
    .trim()
}

function toHtml(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

function fromHtml(text) {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}
