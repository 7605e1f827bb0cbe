/**
 * The web chat's files. Only names that were listed from the folder are served, so no path can leave it, and no hidden
 * file, such as the stamp of the build. Files with a hash in their name are cached; the page itself is revalidated every
 * time.
 */

import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'
import type { Context, Hono } from 'hono'
import { own } from '../base/own.js'
import type { ServerEnv } from './server-context.js'

/** Where the build puts the page. */
export const DEFAULT_WEB_ROOT = fileURLToPath(new URL('../../dist/web', import.meta.url))

/** Serves the page under `/`, `/check` and `/s/…`, and its files, and the documentation under `/docs`; other paths go to the next route. */
export function mountStaticFiles(app: Hono<ServerEnv>, webRoot: string): void {
  let files: Promise<Map<string, StaticFile>> | undefined
  const load = async () => {
    files ??= listFiles(webRoot)
    const found = await files
    // Not built yet: list the folder again next time.
    if (found.size === 0) files = undefined
    return found
  }
  app.get('*', async (c, next) => {
    const known = await load()
    const name = fileName(c.req.path)
    const file = known.get(name) ?? known.get(documentName(name))
    if (file) return send(c, file)
    if (!isPage(c.req.path)) return next()
    const index = known.get('index.html')
    return index ? send(c, index) : c.html(NOT_BUILT, 503, { 'cache-control': 'no-store' })
  })
}

/** Serves ADK's own page, adk-web, under `/dev-ui/`. It was built for other rules than the web chat, so it gets its own. */
export function mountAdkWeb(app: Hono<ServerEnv>, root: string): void {
  const files = listFiles(root)
  app.get('/dev-ui', c => c.redirect('/dev-ui/'))
  app.get('/dev-ui/*', async (c, next) => {
    const name = fileName(c.req.path).replace(/^dev-ui\//, '')
    const file = (await files).get(name === '' ? 'index.html' : name)
    // The page asks for a stylesheet that its package lacks.
    if (!file && name.endsWith('.css')) return c.body('', 200, { 'content-type': 'text/css; charset=utf-8' })
    if (!file) return next()
    const response = await send(c, file)
    response.headers.set('content-security-policy', ADK_WEB_POLICY)
    return response
  })
}

/** Angular's inline styles and handlers, the graph's WebAssembly, and fonts that the page loads from Google. */
const ADK_WEB_POLICY = [
  "default-src 'self'",
  "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval' blob:",
  "style-src 'self' 'unsafe-inline' https://fonts.googleapis.com",
  "font-src 'self' data: https://fonts.gstatic.com",
  "img-src 'self' data: blob:",
  "connect-src 'self' data: blob:",
  "worker-src 'self' blob:",
  "object-src 'none'",
  "frame-ancestors 'none'",
].join('; ')

interface StaticFile {
  name: string
  /** Absent in the published package for large files: only a compressed copy is there. */
  path?: string
  /** Compressed copies in the same folder. */
  compressed: { encoding: 'br' | 'gzip'; path: string }[]
}

async function listFiles(root: string): Promise<Map<string, StaticFile>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => [])
  const names = new Set(
    entries
      .filter(entry => entry.isFile())
      .map(entry => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/')),
  )
  const found = new Map<string, StaticFile>()
  for (const name of new Set([...names].map(name => name.replace(/\.br$/, '')))) {
    if (/\.(gz|map)$|(^|\/)\./.test(name)) continue
    const compressed = COMPRESSED.filter(({ ending }) => names.has(name + ending)).map(
      ({ encoding, ending }) => ({ encoding, path: join(root, name + ending) }),
    )
    found.set(name, { name, compressed, ...(names.has(name) ? { path: join(root, name) } : {}) })
  }
  return found
}

const COMPRESSED = [
  { encoding: 'br', ending: '.br' },
  { encoding: 'gzip', ending: '.gz' },
] as const

function fileName(path: string): string {
  try {
    return decodeURIComponent(path).replace(/^\//, '')
  } catch {
    return ''
  }
}

/** The file of a page of the documentation: `/docs` and `/docs/server` have no ending. */
function documentName(name: string): string {
  const page = name.replace(/\/$/, '')
  return page === 'docs' ? 'docs/index.html' : page.startsWith('docs/') ? `${page}.html` : ''
}

/** Paths that the page routes itself. */
export function isPage(path: string): boolean {
  return (
    path === '/' || path === '/index.html' || path.startsWith('/s/') || path === '/s' || path === '/check'
  )
}

async function send(c: Context<ServerEnv>, file: StaticFile): Promise<Response> {
  const accepted = c.req.header('accept-encoding') ?? ''
  const smaller = file.compressed.find(({ encoding }) => accepted.includes(encoding))
  const bytes = await bytesOf(file, smaller?.path)
  const isHashed = /[-.][\w-]{8,}\.\w+$/.test(file.name) && file.name.startsWith('assets/')
  return c.body(bytes, 200, {
    ...(file.name.startsWith('assets/diagram-') && file.name.endsWith('.html') ? DIAGRAM_HEADERS : {}),
    'content-type': own(TYPES, extname(file.name)) ?? 'application/octet-stream',
    'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'accept-encoding',
    ...(smaller ? { 'content-encoding': smaller.encoding } : {}),
  })
}

/** A file as it was asked for. One that is only there in compressed form is decompressed for clients that cannot do it. */
async function bytesOf(
  { path, compressed }: StaticFile,
  chosen: string | undefined,
): Promise<Buffer<ArrayBuffer>> {
  const only = path ?? chosen
  if (only !== undefined) return readFile(chosen ?? only)
  const [{ path: packed } = { path: '' }] = compressed
  return Buffer.from(await promisify(brotliDecompress)(await readFile(packed)))
}

/**
 * The frame in which the page draws diagrams that a model wrote. It may use inline styles, which the page may not; in
 * return it has no origin, loads nothing, and only the page may frame it. Its own policy names its one script.
 */
const DIAGRAM_HEADERS = {
  'content-security-policy': [
    'sandbox allow-scripts',
    "default-src 'none'",
    "script-src 'unsafe-inline'",
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join('; '),
  'x-frame-options': 'SAMEORIGIN',
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Lango</title></head>
<body>
<h1>Lango is running</h1>
<p>The web chat has not been built. Run <code>npm run build</code>, then load this page again.</p>
<p>The API is ready: <a href="/api/docs">/api/docs</a>.</p>
</body>
</html>
`
