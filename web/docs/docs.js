// The search of the documentation: an index that is loaded with the first letter, and a list below the field.
const field = document.getElementById('search')
const found = document.getElementById('found')
const MOST = 12
let index
let active = 0

document.addEventListener('keydown', event => {
  const isTyping = /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? '')
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return
  event.preventDefault()
  field.focus()
})
document.addEventListener('pointerdown', event => {
  if (!found.contains(event.target) && event.target !== field) close()
})
field.addEventListener('input', () => void search())
field.addEventListener('keydown', event => {
  const links = found.querySelectorAll('a')
  if (event.key === 'Escape') close()
  else if (event.key === 'Enter') links[active]?.click()
  else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault()
    mark((active + (event.key === 'ArrowDown' ? 1 : links.length - 1)) % Math.max(1, links.length))
  }
})
// On a phone the list of pages is folded.
if (matchMedia('(max-width: 60rem)').matches)
  document.querySelector('.docs-nav details')?.removeAttribute('open')

async function search() {
  index ??= fetch('/docs/search.json').then(answer => answer.json())
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return close()
  const hits = (await index)
    .map(entry => ({ entry, score: scoreOf(entry, words) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, MOST)
  show(
    hits.map(({ entry }) => entry),
    words,
  )
}

/** All words must be there; a heading counts more than the text, and a page more than a decision. */
function scoreOf({ page, title, heading, text }, words) {
  let score = 0
  for (const word of words) {
    const inHeading = heading.toLowerCase().includes(word)
    const inText = text.toLowerCase().includes(word)
    if (!inHeading && !inText && !title.toLowerCase().includes(word)) return 0
    score += (inHeading ? 8 : 0) + (title.toLowerCase().includes(word) ? 3 : 0) + (inText ? 1 : 0)
  }
  return page.startsWith('adr/') || page === 'changelog' ? score / 4 : score
}

function show(entries, words) {
  found.replaceChildren(...entries.map(entry => linkTo(entry, words)))
  if (entries.length === 0) found.textContent = 'Nothing found.'
  found.hidden = false
  field.setAttribute('aria-expanded', 'true')
  mark(0)
}

function linkTo({ page, title, heading, id, text }, words) {
  const link = document.createElement('a')
  link.href = `/docs${page === 'index' ? '' : `/${page}`}#${id}`
  link.setAttribute('role', 'option')
  link.id = `found-${page}-${id}`.replaceAll('/', '-')
  const head = document.createElement('strong')
  head.textContent = heading === title ? title : `${title} › ${heading}`
  const body = document.createElement('span')
  const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 40)
  body.textContent = `${at > 0 ? '… ' : ''}${text.slice(at, at + 140)}`
  link.append(head, body)
  link.addEventListener('click', close)
  return link
}

function mark(next) {
  active = next
  const links = [...found.querySelectorAll('a')]
  for (const [place, link] of links.entries()) link.setAttribute('aria-selected', String(place === active))
  const chosen = links[active]
  if (chosen) field.setAttribute('aria-activedescendant', chosen.id)
  chosen?.scrollIntoView({ block: 'nearest' })
}

function close() {
  found.hidden = true
  field.setAttribute('aria-expanded', 'false')
  field.removeAttribute('aria-activedescendant')
}
