/** `lango doctor`: without a session, one line per check of the installation, with a fix where one is needed. */

import { defined } from '../../base/defined.js'
import { own } from '../../base/own.js'
import { redactText } from '../../base/redact.js'
import type { LoadedConfig } from '../../config/load-config.js'
import { AgentError, messageOf } from '../../errors.js'
import {
  createRegistry,
  type ProviderRegistry,
  type ProvidersConfig,
  parseModelReference,
} from '../../provider/provider-registry.js'
import { vendorAddress } from '../../provider/vendor-row.js'
import { keyHint, vendorNames, vendorRow } from '../../provider/vendors.js'
import { listProviders } from '../../runtime/models.js'
import { shortTokenWarning } from '../../server/security/server-token.js'
import { inspectStore } from '../../store/open-store.js'
import { hasBubblewrap } from '../../tools/sandbox.js'
import type { Flags } from '../command.js'
import { packageSummary, requireModelPackage } from '../installed-packages.js'
import type { Io } from '../io.js'
import { loadSettings } from '../open-runtime.js'
import { lineWidth, print, printJson, stylesOf } from '../output.js'
import { plainLine, wrapped } from '../plain-text.js'

/** The result of one check. */
interface Check {
  name: string
  status: 'ok' | 'warn' | 'fail'
  message: string
  /** What to do about it. */
  fix?: string
}

/**
 * Checks the installation, or sessions. The exit code is 0 without problems or after a repair, 1 when a check
 * fails, and 3 when a provider would reject a session.
 */
export async function doctor(io: Io, flags: Flags): Promise<number> {
  refuseContradictions(flags)
  if (flags.report) {
    const { reportForIssue } = await import('./issue-report.js')
    return reportForIssue(io, await checksOf(io, { ...flags, offline: true }), flags)
  }
  if (flags.session !== undefined) {
    const { treatSession } = await import('./treat-sessions.js')
    return treatSession(io, flags.session, flags)
  }
  if (flags.all) {
    const { treatAll } = await import('./treat-sessions.js')
    return treatAll(io, flags)
  }
  return checkInstallation(io, flags)
}

function refuseContradictions({ session, all, fix, as, report: asReport, json }: Flags): void {
  const refuse = (message: string) => {
    throw new AgentError('invalid-argument', `${message} See 'lango doctor --help'.`)
  }
  if (session !== undefined && all) refuse('--session and --all cannot be combined.')
  if (asReport && (all || fix || json)) refuse('--report cannot be combined with --all, --fix or --json.')
  if (fix && session === undefined && !all) refuse('--fix needs --session or --all.')
  if (as !== undefined && (session === undefined || !fix)) {
    refuse('--as needs --session and --fix.')
  }
}

/** Checks Node, configuration, keys, store, providers, port, tokens and sandbox. The exit code is 1 when one fails. */
async function checkInstallation(io: Io, flags: Flags): Promise<number> {
  const shown = await checksOf(io, flags)
  if (flags.json) await printJson(io, { ok: shown.every(({ status }) => status !== 'fail'), checks: shown })
  else await print(io, report(io, shown))
  return shown.some(({ status }) => status === 'fail') ? 1 : 0
}

/** One result for each check of the installation. */
export async function checksOf(io: Io, flags: Flags): Promise<Check[]> {
  const configuration = await readConfiguration(io, flags)
  const checks: Check[] = [
    checkNode(process.versions.node),
    { name: 'packages', status: 'ok', message: packageSummary(io) },
    configuration.check,
  ]
  const { loaded } = configuration
  if (loaded) {
    checks.push(
      checkKeys(loaded),
      await checkStore(loaded.config.store),
      ...(await checkPlatform(loaded)),
      ...(await checkProviders(loaded, { offline: flags.offline === true })),
      ...(flags.offline === true ? [] : await checkFallbacks(loaded)),
      await checkPort(loaded.config.server),
      ...checkTokens(loaded.config.server),
      await checkSandbox(io, loaded.config.tools.sandbox),
    )
  }
  return checks.map(hidden)
}

/** Whether a version of Node is new enough. */
export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isEnough = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])
  if (isEnough) return { name: 'node', status: 'ok', message: `Node ${version}` }
  const fix = `Install Node ${OLDEST_NODE.join('.')} or newer: https://nodejs.org`
  return { name: 'node', status: 'fail', message: `Node ${version} is too old.`, fix }
}

const OLDEST_NODE = [20, 19] as const

async function readConfiguration(io: Io, flags: Flags): Promise<{ check: Check; loaded?: LoadedConfig }> {
  try {
    const loaded = await loadSettings(io, flags, { runs: false })
    const { file, agentFile, skipped } = loaded
    if (skipped.length > 0) {
      const message = `Not loaded, because the folder is not trusted: ${skipped.join(', ')}`
      const fix = "Run 'lango trust' to review and trust them. The other checks ran without them."
      return { check: { name: 'configuration', status: 'warn', message, fix }, loaded }
    }
    const agent = agentFile === undefined ? '' : `; agent file ${agentFile}`
    const message =
      file === undefined ? `No configuration file; using defaults${agent}` : `${file} is valid${agent}`
    return { check: { name: 'configuration', status: 'ok', message }, loaded }
  } catch (error) {
    const fix = "Correct it and run 'lango config check'. The other checks were skipped."
    return { check: { name: 'configuration', status: 'fail', message: messageOf(error), fix } }
  }
}

/** Which providers have a key, and whether the agent's model has one. */
function checkKeys(loaded: LoadedConfig): Check {
  const name = 'keys'
  const providers = providersOf(loaded)
  const present = providers.filter(({ keyPresent, keyVariable }) => keyPresent && keyVariable !== undefined)
  const names = present.map(({ provider }) => provider).join(', ')
  const chosen = chosenProvider(loaded)
  if (chosen === 'demo' && present.length === 0) {
    return {
      name,
      status: 'warn',
      message: 'No API key is set; the offline demo model is used.',
      fix: keyHint(),
    }
  }
  const own = providers.find(({ provider }) => provider === chosen)
  if (own?.findsCredentials && !own.keyPresent) {
    const fix = `Log in with the vendor's command line, or set ${own.keyVariable}; 'lango run' shows whether it works.`
    const message = `No key for ${loaded.model} is set: credentials of the machine are used, if it has any.`
    return { name, status: 'warn', message, fix }
  }
  if (own && !own.keyPresent) {
    const fix = `Set it with export ${own.keyVariable ?? 'its key'}=…, or choose another model with --model.`
    return { name, status: 'fail', message: `No API key for the model ${loaded.model}.`, fix }
  }
  const model = loaded.model === undefined ? '' : `; model ${loaded.model}`
  const message = names === '' ? `None needed${model}` : `Set for ${names}${model}`
  return { name, status: 'ok', message }
}

function providersOf({ config, env }: LoadedConfig): ReturnType<typeof listProviders> {
  // The schema has checked it: options, or a provider made in code.
  return listProviders({ providers: config.providers as ProvidersConfig, env })
}

function chosenProvider({ model }: LoadedConfig): string | undefined {
  if (model === undefined) return undefined
  const { provider, model: bare } = parseModelReference(model)
  return provider ?? vendorNames(({ bareNames }) => bareNames?.test(bare) === true)[0] ?? bare
}

/** Whether the configured store can be used. Nothing is created or migrated. */
export async function checkStore(url: string): Promise<Check> {
  const name = 'store'
  const shown = redactText(url)
  try {
    const { driver, exists, version, known } = await inspectStore(url)
    if (driver === 'memory') {
      const fix = 'Set store to sqlite:./lango.db to keep sessions.'
      return { name, status: 'warn', message: 'memory: sessions are lost when the process exits.', fix }
    }
    if (version > known) {
      const message = `${shown} has schema version ${version}; this version of Lango supports up to ${known}.`
      return { name, status: 'fail', message, fix: 'Update Lango, or use another store.' }
    }
    if (!exists) return { name, status: 'ok', message: `${shown} will be created with the first session` }
    const older = version < known ? `; it is migrated to ${known} when it is opened` : ''
    return { name, status: 'ok', message: `${shown}, schema version ${version}${older}` }
  } catch (error) {
    const isReached = error instanceof AgentError && error.code === 'store-corrupt'
    const fix = isReached
      ? 'Set store to another file or database.'
      : 'Start the database, or set store to another address: sqlite:./lango.db needs no server.'
    const why = messageOf(error)
    const message = why.includes(shown) ? why : `${shown} cannot be used: ${why}`
    return { name, status: 'fail', message, fix }
  }
}

/** Whether a model that needs more than a key has it: a region, a project, an SDK that comes apart from Lango. */
async function checkPlatform(loaded: LoadedConfig): Promise<Check[]> {
  const name = 'platform'
  const { config, model } = loaded
  const registry = createRegistry(config.providers as ProvidersConfig)
  const { provider: id = '', model: bare } = parseModelReference(model ?? '')
  const options = own<unknown>(config.providers, id) as { type?: string } | undefined
  const isPlatform = vendorRow(options?.type ?? id)?.needs !== undefined
  try {
    await requireModelPackage(loaded)
    if (!isPlatform) return []
    await registry.get(id)?.load?.(bare)
    return [{ name, status: 'ok', message: `${id} has what ${model} needs` }]
  } catch (error) {
    const fix = 'Do what the message says, or choose another model with --model.'
    return [{ name, status: 'fail', message: messageOf(error), fix }]
  }
}

/** Connects to each provider that is in use, without a key: any response counts. */
async function checkProviders(loaded: LoadedConfig, { offline }: { offline: boolean }): Promise<Check[]> {
  const name = 'provider'
  if (offline) return [{ name, status: 'ok', message: 'Not checked (--offline)' }]
  const usable = new Set(
    providersOf(loaded).flatMap(({ provider, keyPresent, findsCredentials }) =>
      keyPresent || findsCredentials ? provider : [],
    ),
  )
  const chosen = chosenProvider(loaded)
  const wanted = new Set([...Object.keys(loaded.config.providers), ...(chosen === undefined ? [] : [chosen])])
  const targets = [...wanted].flatMap(provider => {
    const address = addressOf(provider, loaded)
    return usable.has(provider) && address !== undefined ? [{ provider, address }] : []
  })
  if (targets.length === 0) {
    const isDemo = chosen === undefined || chosen === 'demo'
    const message = isDemo
      ? 'No connection needed: the demo model is built in'
      : `${chosen} not checked: no key`
    return [{ name, status: 'ok', message }]
  }
  return Promise.all(targets.map(({ provider, address }) => reach(provider, address)))
}

/** Sends a word to each model that would answer while another cannot. */
async function checkFallbacks({ config }: LoadedConfig): Promise<Check[]> {
  const visit = (agent: Agent): string[] => [
    ...(agent.fallback ?? []),
    ...(agent.subAgents ?? []).flatMap(child => visit(child)),
  ]
  const references = [...new Set(config.agent ? visit(config.agent) : [])]
  if (references.length === 0) return []
  const registry = createRegistry(config.providers as ProvidersConfig)
  return Promise.all(
    references.map(async (reference): Promise<Check> => {
      const name = 'fallback'
      try {
        await askForAWord(registry, reference)
        return { name, status: 'ok', message: `${reference} answers` }
      } catch (error) {
        const fix =
          'A run that needs it fails. Correct its key or name, or remove it; --offline skips this check.'
        return { name, status: 'fail', message: `${reference} does not answer: ${messageOf(error)}`, fix }
      }
    }),
  )
}

interface Agent {
  readonly fallback?: readonly string[] | undefined
  readonly subAgents?: readonly Agent[] | undefined
}

async function askForAWord(registry: ProviderRegistry, reference: string): Promise<void> {
  const { provider, model } = registry.resolve(reference)
  const messages = [{ role: 'user', parts: [{ type: 'text' as const, text: 'Say ok.' }] }]
  const signal = AbortSignal.timeout(FALLBACK_PATIENCE_MS)
  // Models that think need room before their first word.
  const options = { maxOutputTokens: 64 }
  for await (const event of provider.generate({ model, messages, options }, signal))
    if (event.type === 'error') throw event.error
}

const FALLBACK_PATIENCE_MS = 20_000

function addressOf(provider: string, { config, env }: LoadedConfig): string | undefined {
  const given = own<unknown>(config.providers, provider) as
    | { type?: string; preset?: string; baseUrl?: string; region?: string; project?: string }
    | undefined
  if (given?.baseUrl !== undefined) return given.baseUrl
  const vendor = given?.preset ?? given?.type ?? provider
  const row = vendorRow(vendor)
  return row && vendorAddress(row, env, given)
}

const PATIENCE_MS = 4000

async function reach(provider: string, address: string): Promise<Check> {
  const name = 'provider'
  const shown = shownAddress(address)
  try {
    const response = await fetch(address, {
      method: 'GET',
      redirect: 'manual',
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    await response.body?.cancel()
    if (response.status < 500) return { name, status: 'ok', message: `${provider} is reachable at ${shown}` }
    const fix = 'The provider reports a server error; try again later.'
    return { name, status: 'warn', message: `${provider} at ${shown} responds with ${response.status}.`, fix }
  } catch (error) {
    const why = messageOf((error as { cause?: unknown }).cause ?? error)
    const fix = 'Start the server, or check the network and its proxy; --offline skips this check.'
    return { name, status: 'fail', message: `${provider} cannot be reached at ${shown}: ${why}`, fix }
  }
}

/** The address without user, password and query. */
function shownAddress(address: string): string {
  try {
    const { origin, pathname } = new URL(address)
    return `${origin}${pathname === '/' ? '' : pathname}`
  } catch {
    return 'an invalid address'
  }
}

async function checkPort({ port, host }: { port: number; host: string }): Promise<Check> {
  const name = 'port'
  if (port === 0) return { name, status: 'ok', message: 'Any free port (0)' }
  const { createServer } = await import('node:net')
  const failure = await new Promise<NodeJS.ErrnoException | undefined>(resolve => {
    const server = createServer()
    server.once('error', resolve)
    server.listen(port, host, () => server.close(() => resolve(undefined)))
  })
  if (!failure) return { name, status: 'ok', message: `${host}:${port} is free for the server` }
  if (failure.code === 'EADDRINUSE') {
    const fix = "Stop the program that uses it, or use another port: 'lango serve --port 0'."
    return {
      name,
      status: 'warn',
      message: `${host}:${port} is in use, possibly by another Lango server.`,
      fix,
    }
  }
  const fix = 'Correct server.host and server.port in the configuration.'
  return {
    name,
    status: 'fail',
    message: `Cannot listen on ${host}:${port}: ${messageOf(failure)}`,
    fix,
  }
}

/** No result where no tokens are configured. */
function checkTokens({ tokens }: LoadedConfig['config']['server']): Check[] {
  const name = 'tokens'
  const count = Object.keys(tokens).length
  if (count === 0) return []
  const warning = shortTokenWarning(tokens)
  if (warning) return [{ name, status: 'warn', ...warning }]
  const message = `${count === 1 ? '1 token is' : `${count} tokens are`} hashed or long enough`
  return [{ name, status: 'ok', message }]
}

/** Whether commands of tools can run in a sandbox. */
async function checkSandbox(io: Io, mode: 'auto' | 'off' | 'required' = 'auto'): Promise<Check> {
  const name = 'sandbox'
  if (mode === 'off') {
    return { name, status: 'ok', message: 'Off: approved commands run with your permissions' }
  }
  if (await hasBubblewrap({ PATH: io.env.PATH ?? '' })) {
    return { name, status: 'ok', message: 'bubblewrap works: commands see the file system read-only' }
  }
  const fix =
    process.platform === 'linux'
      ? 'Install bubblewrap and allow user namespaces, or set tools.sandbox to "off".'
      : 'No sandbox is available for this system; set tools.sandbox to "off" to hide this warning.'
  if (mode === 'required') {
    return { name, status: 'fail', message: 'A sandbox is required, but bubblewrap does not work here.', fix }
  }
  return { name, status: 'warn', message: 'No sandbox: approved commands run with your permissions.', fix }
}

/** Messages may quote settings: secrets in them are hidden. */
function hidden(check: Check): Check {
  const fix = check.fix && redactText(check.fix)
  return { ...check, message: redactText(check.message), ...defined({ fix }) }
}

function report(io: Io, checks: readonly Check[]): string {
  const styles = stylesOf(io, io.stdout)
  const paint = { ok: styles.green, warn: styles.yellow, fail: styles.red }
  const width = Math.max(...checks.map(({ name }) => name.length))
  const indent = ' '.repeat(width + 8)
  const lines = checks.flatMap(({ name, status, message, fix }) => {
    const [first = '', ...rest] = message
      .split('\n')
      .flatMap(line => wrapped(plainLine(line), indent, lineWidth(io)))
    const head = `${paint[status](status.padEnd(4))}  ${name.padEnd(width)}  ${first.trimStart()}`
    const help = fix === undefined ? [] : wrapped(plainLine(fix), indent, lineWidth(io)).map(styles.dim)
    return [head, ...rest, ...help]
  })
  const failed = checks.filter(({ status }) => status === 'fail').length
  const verdict = failed === 0 ? 'All checks passed.' : `${failed} of ${checks.length} checks failed.`
  return `${lines.join('\n')}\n\n${verdict}\n`
}
