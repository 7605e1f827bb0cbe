/** `lango doctor` without a session: one line for each thing that must be in place, with the fix. */

import { redactText } from '../../base/redact.js'
import type { LoadedConfig } from '../../config/load-config.js'
import { messageOf } from '../../errors.js'
import { shortTokenWarning } from '../../server/security/server-token.js'
import type { Flags } from '../command.js'
import { wrapped } from '../lint-report.js'
import { loadSettings } from '../open-runtime.js'
import { lineWidth, print, printJson, stylesOf } from '../output.js'
import { plainLine } from '../plain-text.js'
import type { Check } from './check.js'
import { checkKeys, checkProviders } from './check-providers.js'
import { checkSandbox } from './check-sandbox.js'
import { checkStore } from './check-store.js'

/** Checks Node, configuration, keys, store, providers, port, tokens and sandbox. The exit code is 1 when one fails. */
export async function checkInstallation(flags: Flags): Promise<number> {
  const configuration = await readConfiguration(flags)
  const checks = [checkNode(process.versions.node), configuration.check]
  const { loaded } = configuration
  if (loaded) {
    checks.push(
      checkKeys(loaded),
      await checkStore(loaded.config.store),
      ...(await checkProviders(loaded, { offline: flags.offline === true })),
      await checkPort(loaded.config.server),
      ...checkTokens(loaded.config.server),
      await checkSandbox(loaded.config.tools.sandbox),
    )
  }
  const shown = checks.map(hidden)
  if (flags.json) await printJson({ ok: shown.every(({ status }) => status !== 'fail'), checks: shown })
  else await print(report(shown))
  return shown.some(({ status }) => status === 'fail') ? 1 : 0
}

/** Whatever a message repeats, a key is not part of it. */
function hidden(check: Check): Check {
  const fix = check.fix === undefined ? {} : { fix: redactText(check.fix) }
  return { ...check, message: redactText(check.message), ...fix }
}

const OLDEST_NODE = [20, 19] as const

/** Whether a version of Node is new enough. */
export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isEnough = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])
  if (isEnough) return { name: 'node', status: 'ok', message: `Node ${version}` }
  const fix = `Install Node ${OLDEST_NODE.join('.')} or newer: https://nodejs.org`
  return { name: 'node', status: 'fail', message: `Node ${version} is too old.`, fix }
}

async function readConfiguration(flags: Flags): Promise<{ check: Check; loaded?: LoadedConfig }> {
  try {
    const loaded = await loadSettings(flags, { runs: false })
    const { file, agentFile, skipped } = loaded
    if (skipped.length > 0) {
      const message = `Left out, because the folder is not trusted: ${skipped.join(', ')}`
      const fix = "'lango trust' shows what they would do, and asks. The other checks are without them."
      return { check: { name: 'configuration', status: 'warn', message, fix }, loaded }
    }
    const agent = agentFile === undefined ? '' : `; the agent is ${agentFile}`
    const message =
      file === undefined
        ? `No configuration file here: the defaults hold${agent}`
        : `${file} is valid${agent}`
    return { check: { name: 'configuration', status: 'ok', message }, loaded }
  } catch (error) {
    const fix = "Correct it, then see 'lango config check'. The other checks wait for it."
    return { check: { name: 'configuration', status: 'fail', message: messageOf(error), fix } }
  }
}

/** Says nothing where the server needs no token. */
function checkTokens({ tokens }: LoadedConfig['config']['server']): Check[] {
  const name = 'tokens'
  const count = Object.keys(tokens).length
  if (count === 0) return []
  const warning = shortTokenWarning(tokens)
  if (warning) return [{ name, status: 'warn', ...warning }]
  const message = `${count === 1 ? '1 token is' : `${count} tokens are`} hashed or long enough`
  return [{ name, status: 'ok', message }]
}

async function checkPort({ port, host }: { port: number; host: string }): Promise<Check> {
  const name = 'port'
  if (port === 0) return { name, status: 'ok', message: 'Any free port is taken' }
  const { createServer } = await import('node:net')
  const failure = await new Promise<NodeJS.ErrnoException | undefined>(resolve => {
    const server = createServer()
    server.once('error', resolve)
    server.listen(port, host, () => server.close(() => resolve(undefined)))
  })
  if (!failure) return { name, status: 'ok', message: `${host}:${port} is free for the server` }
  if (failure.code === 'EADDRINUSE') {
    const fix = "End what uses it, or take another: 'lango serve --port 0'."
    return {
      name,
      status: 'warn',
      message: `${host}:${port} is in use, perhaps by a Lango that runs already.`,
      fix,
    }
  }
  const fix = 'Correct server.host and server.port in the configuration.'
  return {
    name,
    status: 'fail',
    message: `${host}:${port} cannot be listened on: ${messageOf(failure)}`,
    fix,
  }
}

function report(checks: readonly Check[]): string {
  const styles = stylesOf(process.stdout)
  const paint = { ok: styles.green, warn: styles.yellow, fail: styles.red }
  const width = Math.max(...checks.map(({ name }) => name.length))
  const indent = ' '.repeat(width + 8)
  const lines = checks.flatMap(({ name, status, message, fix }) => {
    const [first = '', ...rest] = message
      .split('\n')
      .flatMap(line => wrapped(plainLine(line), indent, lineWidth()))
    const head = `${paint[status](status.padEnd(4))}  ${name.padEnd(width)}  ${first.trimStart()}`
    const help = fix === undefined ? [] : wrapped(plainLine(fix), indent, lineWidth()).map(styles.dim)
    return [head, ...rest, ...help]
  })
  const failed = checks.filter(({ status }) => status === 'fail').length
  const verdict =
    failed === 0 ? 'Everything that Lango needs is in place.' : `${failed} of ${checks.length} checks failed.`
  return `${lines.join('\n')}\n\n${verdict}\n`
}
