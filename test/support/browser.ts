/**
 * A real Chromium from an npm package, and the web chat built once for all test files. The browser unpacks
 * itself into a folder of its own; the bundle is kept until one of its sources changes.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/lango-web')

/** Starts Chromium. The caller closes it. */
export async function launchBrowser(): Promise<Browser> {
  const { chromium } = await import('playwright-core')
  const executablePath = process.env.LANGO_TEST_CHROMIUM ?? (await unpackedChromium())
  const env = { ...process.env, FONTCONFIG_PATH: await fontSettings() } as Record<string, string>
  return chromium.launch({ executablePath, args: FLAGS, env, headless: true })
}

/** Without a single font the browser ends itself, so it is given the package's own beside those of the machine. */
async function fontSettings(): Promise<string> {
  const folder = join(CACHE, 'fonts')
  await mkdir(folder, { recursive: true })
  const folders = [join(CACHE, 'chromium/fonts'), '/usr/share/fonts', '/usr/local/share/fonts']
  const dirs = folders.map(path => `<dir>${path}</dir>`).join('')
  const alias = '<alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>'
  const settings = `${dirs}${alias}<cachedir>${join(folder, 'cache')}</cachedir>`
  const text = `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>${settings}</fontconfig>`
  await writeFile(join(folder, 'fonts.conf'), text)
  return folder
}

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-default-apps',
  '--no-first-run',
  '--mute-audio',
]

/** The package unpacks into the temporary folder of the process, so that is changed while it does. */
async function unpackedChromium(): Promise<string> {
  process.env.AWS_LAMBDA_JS_RUNTIME ??= 'nodejs22.x'
  const folder = join(CACHE, 'chromium')
  await mkdir(folder, { recursive: true })
  const before = process.env.TMPDIR
  process.env.TMPDIR = folder
  try {
    const { default: chromium } = await import('@sparticuz/chromium')
    return await chromium.executablePath()
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}

/** The folder with the built page; builds it when its sources have changed. */
export async function builtWeb(): Promise<string> {
  const folder = join(CACHE, await sourcesHash())
  if (existsSync(join(folder, 'index.html'))) return folder
  await mkdir(CACHE, { recursive: true })
  const fresh = await mkdtemp(join(CACHE, 'build-'))
  await buildWeb(fresh)
  // Two test files may build at the same time; the second finds the place taken and leaves its own.
  await rename(fresh, folder).catch(() => rm(fresh, { recursive: true, force: true }))
  return folder
}

/** As it is published: the test runner's own mode would build React with all its checks, at a third of the speed. */
async function buildWeb(outDir: string): Promise<void> {
  const before = process.env.NODE_ENV
  process.env.NODE_ENV = 'production'
  try {
    const { build } = await import('vite')
    await build({
      configFile: join(ROOT, 'web/vite.config.ts'),
      mode: 'production',
      logLevel: 'error',
      build: { outDir, emptyOutDir: true },
    })
  } finally {
    if (before === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = before
  }
}

async function sourcesHash(): Promise<string> {
  const hash = createHash('sha256').update('production')
  for (const folder of ['web', 'src/client']) {
    const entries = await readdir(join(ROOT, folder), { recursive: true, withFileTypes: true })
    const paths = entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
    for (const path of paths.sort()) hash.update(path.slice(ROOT.length)).update(await readFile(path))
  }
  return hash.digest('hex').slice(0, 16)
}

/** How long a page may take on a busy machine. */
export const PATIENCE_MS = 15_000

/** What a page did that it must not do: errors, refused resources, requests to other hosts. */
export interface WatchedPage {
  page: Page
  problems: string[]
}

/** A page in a context of its own, watched from its first request. */
export async function openPage(
  browser: Browser,
  options: BrowserContextOptions & { url: string },
): Promise<WatchedPage> {
  const { url, ...contextOptions } = options
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...contextOptions })
  context.setDefaultTimeout(PATIENCE_MS)
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', error => problems.push(`error: ${error.message}`))
  page.on('console', message => {
    if (message.type() === 'error' && !isExpected(message.text())) problems.push(`console: ${message.text()}`)
  })
  page.on('request', request => {
    const target = new URL(request.url())
    const isOwn = target.origin === new URL(url).origin || /^(data|blob|about):/.test(target.protocol)
    if (!isOwn) problems.push(`other host: ${request.url()}`)
  })
  await page.goto(url)
  return { page, problems }
}

/** The browser itself reports answers that are errors; tests of errors expect them. */
function isExpected(text: string): boolean {
  return text.startsWith('Failed to load resource')
}
