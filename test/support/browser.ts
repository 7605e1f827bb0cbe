/**
 * A real Chromium from an npm package, and the web chat built once for all test files. The browser unpacks
 * itself into a separate folder; the bundle is kept until one of its sources changes.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/lango-web')

/** The browser of this worker process, for all its test files. It ends with the process. */
export function sharedBrowser(): Promise<Browser> {
  shared ??= launchBrowser().then(browser =>
    browser.on('disconnected', () => {
      shared = undefined
    }),
  )
  return shared
}

let shared: Promise<Browser> | undefined

/** Starts Chromium. The caller closes it. */
export async function launchBrowser(): Promise<Browser> {
  const { chromium } = await import('playwright-core')
  prepared ??= alone('browser', prepare)
  return chromium.launch({ ...(await prepared), args: FLAGS, headless: true })
}

interface Prepared {
  executablePath: string
  env: Record<string, string>
}

/** Once per process: the package sets the variables that its browser needs when it is imported, and not again. */
let prepared: Promise<Prepared> | undefined

/** The variables are for the browser; the process, which other test files share, gets its own ones back. */
async function prepare(): Promise<Prepared> {
  const before = { ...process.env }
  try {
    const executablePath = process.env.LANGO_TEST_CHROMIUM ?? (await unpackedChromium())
    const env = { ...process.env, FONTCONFIG_PATH: await fontSettings() } as Record<string, string>
    return { executablePath, env }
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name]
    Object.assign(process.env, before)
  }
}

/** Without any font the browser exits, so the package's own fonts are added to those of the machine. */
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
  const complete = join(folder, 'complete')
  // What was left half unpacked would be taken for a browser.
  if (!existsSync(complete)) await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const before = process.env.TMPDIR
  process.env.TMPDIR = folder
  try {
    const { default: chromium } = await import('@sparticuz/chromium')
    const path = await chromium.executablePath()
    await writeFile(complete, '')
    return path
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}

/** The folder with the built page. The first call of a process builds it if its sources have changed. */
export function builtWeb(): Promise<string> {
  built ??= alone('page', buildPage)
  return built
}

let built: Promise<string> | undefined

/** In a separate process: the test runner's settings are not those of a build. */
async function buildPage(): Promise<string> {
  const folder = join(CACHE, 'page')
  await promisify(execFile)(process.execPath, [join(ROOT, 'scripts/build-web.mjs'), folder], { cwd: ROOT })
  return folder
}

/** Test files run at the same time; what they share is made by one of them. */
async function alone<Made>(name: string, make: () => Promise<Made>): Promise<Made> {
  await mkdir(CACHE, { recursive: true })
  const unlock = await lock(join(CACHE, `${name}.lock`))
  try {
    return await make()
  } finally {
    await unlock()
  }
}

/** The lock of a crashed process is taken over. */
async function lock(path: string): Promise<() => Promise<void>> {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    try {
      await writeFile(path, String(process.pid), { flag: 'wx' })
      return () => rm(path, { force: true })
    } catch {
      const owner = Number(await readFile(path, 'utf8').catch(() => '0'))
      if (owner > 0 && !isAlive(owner)) await rm(path, { force: true })
      await setTimeout(100)
    }
  }
  throw new TypeError(`Another process has been at work for a minute: ${path}`)
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0)
    return true
  } catch {
    return false
  }
}

/** How long a page may take on a busy machine. */
export const PATIENCE_MS = 60_000

/** What a page did that it must not do: errors, refused resources, requests to other hosts. */
export interface WatchedPage {
  page: Page
  problems: string[]
}

export type PageOptions = BrowserContextOptions & { url: string }

/**
 * A page in a separate context of the shared browser, observed from its first request and closed with its test.
 * Without motion, which a page needs time for and a test must wait for, unless the test asks for it.
 */
export async function openPage({ url, ...options }: PageOptions): Promise<WatchedPage> {
  const browser = await sharedBrowser()
  const viewport = { width: 1280, height: 800 }
  const context = await browser.newContext({ viewport, reducedMotion: 'reduce', ...options })
  onTestFinished(() => context.close())
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

/** A page whose test fails if the page did what it must not do. */
export async function openCleanPage(options: PageOptions): Promise<Page> {
  const { page, problems } = await openPage(options)
  onTestFinished(async () => {
    await page.context().close()
    expect(problems).toEqual([])
  })
  return page
}

/** Sends a message with the form of the chat. */
export async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.keyboard.press('Enter')
}

/** The browser itself reports answers that are errors; tests of errors expect them. */
function isExpected(text: string): boolean {
  return text.startsWith('Failed to load resource')
}

/** Fails when axe finds anything wrong in the page as it is now, which `state` names. */
export async function checkAccessible(page: Page, state?: string): Promise<void> {
  axe ??= readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(await axe)
  const found =
    await page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, target }) =>
      id + ': ' + target.join(' ') + ' ' + html.slice(0, 160))))`)
  expect(found, state).toEqual([])
}

let axe: Promise<string> | undefined

/** Keeps a screenshot, for a person to look at, if LANGO_TEST_PICTURES names a folder. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  const folder = process.env.LANGO_TEST_PICTURES
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) })
}
