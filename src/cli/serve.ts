/** `lango serve`: runs the server with the web chat until it is stopped. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { defined } from '../base/defined.js'
import { redactText } from '../base/redact.js'
import type { LangoConfig } from '../config/config.js'
import { AgentError } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RuntimeInfo } from '../runtime/info.js'
import type { Runtime } from '../runtime/runtime.js'
import { shortTokenWarning } from '../server/security/server-token.js'
import type { ServeOptions } from '../server/serve.js'
import type { Flags } from './command.js'
import { requireModelPackage } from './installed-packages.js'
import { loadSettings, runtimeOptions } from './open-runtime.js'
import { version } from './version.js'
import { count, demoNotice } from './wording.js'

/** Serves until SIGINT or SIGTERM. A second signal exits without waiting for active runs. */
export async function serve(flags: Flags): Promise<number> {
  const adkWebRoot = flags.adk ? findAdkWeb() : undefined
  const loaded = await loadSettings(flags, { runs: true })
  await requireModelPackage(loaded)
  const { server, log, retention } = loaded.config
  const [{ createLogger }, { createRuntime }, { serve: listen }] = await Promise.all([
    import('../observe/log.js'),
    import('../runtime/runtime.js'),
    import('../server/serve.js'),
  ])
  // A terminal shows warnings only, unless a level is configured; a log collector gets the configured level.
  const level = loaded.sources['log.level'] === undefined && process.stderr.isTTY ? 'warn' : log.level
  const logger = await createLogger({ ...log, level, destination: log.file })
  const runtime = await createRuntime(await runtimeOptions(loaded, logger))
  const tokens = Object.keys(server.tokens)
  try {
    const running = await listen({
      runtime,
      allowedOrigins: server.allowedOrigins,
      allowedHosts: server.allowedHosts,
      trustedProxies: server.trustedProxies,
      graceMs: server.graceMs,
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
    if (warning) process.stderr.write(`Warning: ${warning.message} ${warning.fix}\n`)
    announce(facts, await runtime.info(), flags)
    await untilSignal(() => running.close())
    sayHandedOver(runtime, logger)
    return 0
  } finally {
    await runtime.close()
    logger.close()
  }
}

/** The built page of ADK, in the package of its development tools. */
function findAdkWeb(): string {
  const name = '@google/adk-devtools'
  const folder = join(process.cwd(), 'node_modules', name, 'dist/browser')
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

function announce({ url, store: address, hasTokens }: Place, info: RuntimeInfo, flags: Flags): void {
  const { agent, model, store } = info
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ url, agent, model, store, version: version() })}\n`)
    return
  }
  const modelName = model === '' ? 'its own model' : model
  // The wildcard address cannot be opened in a browser.
  const shown = url.replace(/\/\/(0\.0\.0\.0|\[::\])/, '//localhost')
  process.stdout.write(`Serving ${agent} (${modelName}) at ${shown}, store ${redactText(address)}\n`)
  if (hasTokens) process.stderr.write(`Open ${shown}/login?token=… with one of the tokens.\n`)
  if (flags.adk) process.stdout.write(`ADK’s page: ${shown}/dev-ui/\n`)
  if (info.demo) process.stderr.write(`${demoNotice(flags.model !== undefined)}\n`)
}

/** Closes gracefully on the first signal and exits at once on the second. */
async function untilSignal(close: () => Promise<void>): Promise<void> {
  await new Promise<void>(resolve => {
    for (const signal of SIGNALS) process.once(signal, resolve)
  })
  for (const signal of SIGNALS) process.once(signal, () => process.exit(130))
  if (process.stderr.isTTY)
    process.stderr.write('Shutting down: waiting for active runs. Press Ctrl-C again to exit at once.\n')
  await close()
}

/** Runs that did not end in time are continued by another process on the store, or by the next server. */
function sayHandedOver(runtime: Runtime, logger: Logger): void {
  const runs = runtime.active().filter(({ loop }) => loop !== undefined).length
  logger.info('Server stopped', { runsHandedOver: runs })
  if (runs > 0 && process.stderr.isTTY)
    process.stderr.write(
      `${count(runs, 'unfinished run')} handed over: the next process on the store continues.\n`,
    )
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
