/** `lango serve`: runs the server with the web chat until it is stopped. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { defined } from '../base/defined.js'
import { within } from '../base/pause.js'
import { redactText } from '../base/redact.js'
import type { LangoConfig } from '../config/config.js'
import { AgentError } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RuntimeInfo } from '../runtime/info.js'
import type { Runtime } from '../runtime/runtime.js'
import { shortTokenWarning } from '../server/security/server-token.js'
import type { RunningServer, ServeOptions } from '../server/serve.js'
import type { Flags } from './command.js'
import { requireModelPackage } from './installed-packages.js'
import type { Io } from './io.js'
import { loadSettings, runtimeOptions } from './open-runtime.js'
import { version } from './version.js'
import { count, demoNotice } from './wording.js'

/**
 * Serves until SIGINT or SIGTERM, then closes within `server.closeMs` and exits: a tool that ignores its signal, a timer or
 * a database that does not answer cannot keep the process. A second signal exits at once.
 */
export async function serve(io: Io, flags: Flags): Promise<number> {
  const adkWebRoot = flags.adk ? findAdkWeb(io) : undefined
  const loaded = await loadSettings(io, flags, { runs: true })
  await requireModelPackage(loaded)
  const { server, log, retention } = loaded.config
  const [{ createLogger }, { createRuntime }, { serve: listen }] = await Promise.all([
    import('../observe/log.js'),
    import('../runtime/runtime.js'),
    import('../server/serve.js'),
  ])
  // A terminal shows warnings only, unless a level is configured; a log collector gets the configured level.
  const level = loaded.sources['log.level'] === undefined && io.stderr.isTTY ? 'warn' : log.level
  const logger = await createLogger({ ...log, level, destination: log.file })
  const options = await runtimeOptions(loaded, logger)
  const endStart = exitOnSignal(io)
  const runtime = await whenStoreIsThere(() => createRuntime(options), logger)
  const tokens = Object.keys(server.tokens)
  const times = closingTimes(server)
  try {
    const running = await listen({
      runtime,
      allowedOrigins: server.allowedOrigins,
      allowedHosts: server.allowedHosts,
      trustedProxies: server.trustedProxies,
      graceMs: times.graceMs,
      keepRunsMs: (retention.runsDays ?? server.keepRunsDays) * DAY_MS,
      ...(retention.usageDays === undefined ? {} : { keepUsageMs: retention.usageDays * DAY_MS }),
      logger,
      version: version(),
      tokens: tokensOf(server.tokens),
      host: flags.host ?? server.host,
      port: flags.port === undefined ? server.port : portOf(flags.port),
      limits: limitsOf(server),
      adkWebRoot,
      hooks: loaded.config.hooks,
    })
    const facts = { url: running.url, store: loaded.config.store, hasTokens: tokens.length > 0 }
    const warning = shortTokenWarning(server.tokens)
    if (warning) io.stderr.write(`Warning: ${warning.message} ${warning.fix}\n`)
    announce(io, facts, await runtime.info(), flags)
    await untilSignal(io, endStart)
    await closeWithin(io, times, { running, runtime, logger })
  } catch (error) {
    await runtime.close({ withinMs: times.closeMs })
    logger.close()
    throw error
  }
  logger.close()
  io.exit(0)
}

/**
 * Opens a runtime, and waits for a store that is not available yet, as a server waits for one that goes away later: in a
 * cluster both may start at the same time. An error that another attempt cannot change, such as a refused password or a
 * database that does not exist, is thrown at once. A signal ends the process meanwhile.
 */
async function whenStoreIsThere<T>(open: () => Promise<T>, logger: Logger): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await open()
    } catch (error) {
      const mayCome = error instanceof AgentError && error.code === 'store-unavailable' && error.retryable
      if (!mayCome) throw error
      const retryInMs = Math.min(500 * 2 ** attempt, MOST_PAUSE_MS)
      logger.warn('The server waits for its store', { error: error.message, retryInMs })
      await sleep(retryInMs)
    }
  }
}

const MOST_PAUSE_MS = 5000

/**
 * How long stopping may take as a whole, how much of it active runs may take to end, and how much that and closing the
 * server may take: half of the rest is left for the runtime.
 */
export function closingTimes({ graceMs, closeMs }: Pick<LangoConfig['server'], 'graceMs' | 'closeMs'>) {
  const wholeMs = closeMs ?? Math.max(8000, graceMs + HANDOVER_MS)
  const runsMs = Math.min(graceMs, Math.max(wholeMs - HANDOVER_MS, wholeMs / 2))
  return { closeMs: wholeMs, graceMs: runsMs, serverMs: (runsMs + wholeMs) / 2 }
}

/** The time that handing over runs, closing connections and closing the store may take. */
const HANDOVER_MS = 4000

interface Closing {
  running: RunningServer
  runtime: Runtime
  logger: Logger
}

/** Closes the server and the runtime. Resolves after that time at the latest. */
async function closeWithin(
  io: Io,
  { closeMs, serverMs }: { closeMs: number; serverMs: number },
  { running, runtime, logger }: Closing,
): Promise<void> {
  const until = performance.now() + closeMs
  const leftMs = () => Math.max(0, until - performance.now())
  // Ends with the grace and a moment for connections, unless the store does not answer.
  await within(serverMs, running.close())
  const unfinished = () => runtime.active().filter(({ loop }) => loop !== undefined).length
  const before = unfinished()
  await runtime.close({ withinMs: leftMs() })
  const left = unfinished()
  const runsHandedOver = before - left
  if (left > 0)
    logger.warn('Runs could not be handed over in time: the next process finds them', { runs: left })
  logger.info('Server stopped', { runsHandedOver })
  if (runsHandedOver > 0 && io.stderr.isTTY)
    io.stderr.write(
      `${count(runsHandedOver, 'unfinished run')} handed over: the next process on the store continues.\n`,
    )
}

/** The built page of ADK, in the package of its development tools. */
function findAdkWeb(io: Io): string {
  const name = '@google/adk-devtools'
  const folder = join(io.cwd, 'node_modules', name, 'dist/browser')
  if (existsSync(folder)) return folder
  const fixes = '--ignore-scripts, and overrides of all @mikro-orm/* packages to 6.6.16 in package.json'
  const advice = `Install it: npm install --save-dev ${name}@2.0.0 (if that fails: ${fixes}).`
  throw new AgentError('invalid-config', `--adk needs the package ${name} in this folder. ${advice}`)
}

function limitsOf(server: LangoConfig['server']): ServeOptions['limits'] {
  const { runsPerUser, streamsPerUser, maxBodyBytes } = server
  const { maxMessages, maxStateKeys, maxParts, maxDepth, maxValues } = server
  const counts = { maxMessages, maxStateKeys, maxParts, maxDepth, maxValues }
  return defined({ runsPerUser, streamsPerUser, maxBodyBytes, ...counts })
}

interface Place {
  url: string
  store: string
  hasTokens: boolean
}

function announce(io: Io, { url, store: address, hasTokens }: Place, info: RuntimeInfo, flags: Flags): void {
  const { agent, model, store } = info
  if (flags.json) {
    io.stdout.write(`${JSON.stringify({ url, agent, model, store, version: version() })}\n`)
    return
  }
  const modelName = model === '' ? 'its own model' : model
  // The wildcard address cannot be opened in a browser.
  const shown = url.replace(/\/\/(0\.0\.0\.0|\[::\])/, '//localhost')
  io.stdout.write(`Serving ${agent} (${modelName}) at ${shown}, store ${redactText(address)}\n`)
  if (hasTokens) io.stderr.write(`Open ${shown}/login?token=… with one of the tokens.\n`)
  if (flags.adk) io.stdout.write(`ADK’s page: ${shown}/dev-ui/\n`)
  if (info.demo) io.stderr.write(`${demoNotice(flags.model !== undefined)}\n`)
}

/**
 * Until the server listens, a signal exits at once. The default action would do that, but not in the first process of a
 * container: the kernel ignores signals that it has no handler for.
 */
function exitOnSignal(io: Io): () => void {
  const exit = () => io.exit(0)
  for (const signal of SIGNALS) io.signals.once(signal, exit)
  return () => {
    for (const signal of SIGNALS) io.signals.off(signal, exit)
  }
}

/** Resolves at the first signal. The second one exits at once. */
async function untilSignal(io: Io, endStart: () => void): Promise<void> {
  await new Promise<void>(resolve => {
    for (const signal of SIGNALS) io.signals.once(signal, resolve)
    endStart()
  })
  for (const signal of SIGNALS) io.signals.once(signal, () => io.exit(130))
  if (io.stderr.isTTY)
    io.stderr.write('Shutting down: waiting for active runs. Press Ctrl-C again to exit at once.\n')
}

const DAY_MS = 86_400_000

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** All tokens of a list belong to the user `user`. */
function tokensOf(tokens: Readonly<Record<string, string>> | readonly string[]): Record<string, string> {
  return Array.isArray(tokens)
    ? Object.fromEntries(tokens.map(token => [token, 'user']))
    : { ...(tokens as Record<string, string>) }
}

function portOf(text: string): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw new AgentError('invalid-argument', `--port is "${text}", but must be a number from 0 to 65535.`)
}
