// Renders the documentation for `lango serve`: docs/*.md, the decisions, README and CHANGELOG as pages of their own
// style and search, and llms.txt. `node scripts/build-docs.mjs [folder]`, by default into dist/web.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync } from 'node:zlib'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const STAMP = '.docs-digest'
const IMAGES = 'docs/images'
const ASSETS = [
  'web/docs/docs.js',
  'web/src/styles/tokens.css',
  'web/src/styles/markdown.css',
  'web/docs/docs.css',
]

/** Renders the pages unless they are up to date. Returns whether they were rendered. */
export async function buildDocs({ folder = join(ROOT, 'dist', 'web'), root = ROOT } = {}) {
  const pages = listPages(root)
  const images = existsSync(join(root, IMAGES)) ? readdirSync(join(root, IMAGES)).sort() : []
  const digest = digestOf(root, [
    ...pages.map(({ file }) => file),
    ...images.map(name => `${IMAGES}/${name}`),
    ...ASSETS,
    'scripts/build-docs.mjs',
  ])
  const stamp = join(folder, STAMP)
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return false
  const { renderPages } = await import('./render-docs.mjs')
  const target = join(folder, 'docs')
  rmSync(target, { recursive: true, force: true })
  const read = file => readFileSync(join(root, file), 'utf8')
  const { files, llms } = await renderPages(pages, read)
  const colours = read('web/src/styles/markdown.css')
  const style = [
    read('web/src/styles/tokens.css'),
    colours.slice(colours.indexOf('.hljs-comment')),
    read('web/docs/docs.css'),
  ]
  files.set('docs.css', style.join('\n'))
  files.set('docs.js', read('web/docs/docs.js'))
  for (const [name, text] of files) write(join(target, name), text)
  write(join(folder, 'llms.txt'), llms)
  if (images.length > 0) cpSync(join(root, IMAGES), join(target, 'images'), { recursive: true })
  writeFileSync(stamp, digest)
  return true
}

/** Where a page comes from, and its name under /docs. */
export function listPages(root) {
  const markdown = folder =>
    readdirSync(join(root, folder))
      .filter(name => name.endsWith('.md'))
      .sort()
  return [
    { file: 'docs/README.md', name: 'index' },
    { file: 'README.md', name: 'readme' },
    { file: 'CHANGELOG.md', name: 'changelog' },
    { file: 'CONTRIBUTING.md', name: 'contributing' },
    { file: 'SECURITY.md', name: 'reporting' },
    ...markdown('docs')
      .filter(name => name !== 'README.md')
      .map(name => ({ file: `docs/${name}`, name: name.slice(0, -3) })),
    ...markdown('docs/adr').map(name => ({ file: `docs/adr/${name}`, name: `adr/${name.slice(0, -3)}` })),
  ]
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  // Of the pages themselves each is read once; the index is large.
  if (path.endsWith('.json')) writeFileSync(`${path}.br`, brotliCompressSync(text))
}

function digestOf(root, files) {
  const hash = createHash('sha256')
  for (const file of files)
    hash
      .update(file)
      .update('\0')
      .update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [given] = process.argv.slice(2)
  const folder = given === undefined ? join(ROOT, 'dist', 'web') : resolve(given)
  const built = await buildDocs({ folder })
  console.log(`${relative(ROOT, join(folder, 'docs'))} ${built ? 'was rendered' : 'is up to date'}`)
}
