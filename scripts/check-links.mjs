// Relative links in README.md, CHANGELOG.md, SECURITY.md and docs/ lead to files that exist, and anchors to
// headings that exist. Addresses with a scheme are not followed: checks make no connections.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, sep } from 'node:path'

const PAGES = ['README.md', 'CHANGELOG.md', 'SECURITY.md']

/** One sentence for each link that leads nowhere. */
export function checkLinks(root) {
  const docs = existsSync(join(root, 'docs')) ? readdirSync(join(root, 'docs'), { recursive: true }) : []
  const pages = docs
    .map(name => `docs/${String(name).split(sep).join('/')}`)
    .filter(name => name.endsWith('.md'))
  return [...PAGES, ...pages]
    .filter(name => existsSync(join(root, name)))
    .flatMap(name => linksIn(readFileSync(join(root, name), 'utf8')).flatMap(link => check(root, name, link)))
}

function check(root, page, { line, target }) {
  const [path, anchor] = target.split('#')
  const file = path === '' ? page : posix.join(dirname(page), decodeURIComponent(path))
  if (file.startsWith('..')) return [`${page}:${line}: ${target} is outside the repository`]
  if (!existsSync(join(root, file))) return [`${page}:${line}: ${target}: ${file} does not exist`]
  if (anchor === undefined || !file.endsWith('.md')) return []
  const known = anchorsIn(readFileSync(join(root, file), 'utf8'))
  return known.has(anchor) ? [] : [`${page}:${line}: ${target}: ${file} has no heading "${anchor}"`]
}

function linksIn(text) {
  return proseLines(text).flatMap((content, index) => {
    const plain = content.replaceAll(/`[^`]*`/g, code => ' '.repeat(code.length))
    const found = [
      ...plain.matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g),
      ...plain.matchAll(/\b(?:src|srcset|href)="([^"]+)"/g),
    ]
    return found
      .map(([, target]) => ({ line: index + 1, target }))
      .filter(({ target }) => !/^[a-z][a-z+.-]*:/i.test(target))
  })
}

/** The anchors that GitHub gives to headings: lower case, no punctuation, hyphens for spaces, numbered when repeated. */
function anchorsIn(text) {
  const anchors = new Set()
  for (const line of proseLines(text)) {
    const [, heading] = /^#{1,6} (.+)$/.exec(line) ?? []
    if (heading === undefined) continue
    const words = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .trim()
      .toLowerCase()
    const base = words.replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')
    let anchor = base
    for (let count = 1; anchors.has(anchor); count++) anchor = `${base}-${count}`
    anchors.add(anchor)
  }
  return anchors
}

/** The lines of a page with those inside code fences blanked. */
function proseLines(text) {
  let fence
  return text.split('\n').map(line => {
    const [ticks] = /^\s*`{3,}/.exec(line) ?? []
    if (fence === undefined && ticks !== undefined) {
      fence = ticks.trim()
      return ''
    }
    if (fence === undefined) return line
    if (line.trim() === fence) fence = undefined
    return ''
  })
}
