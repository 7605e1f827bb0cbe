import { own } from '../base/own.js'
import { redact } from '../base/redact.js'
import { AgentError } from '../errors.js'
import { hashToken, newToken, shortTokenWarning } from '../server/security/server-token.js'
import type { Flags } from './command.js'
import type { Io } from './io.js'
import { type LoadedSettings, loadSettings, runtimeOptions } from './open-runtime.js'
import { lineWidth, print, printJson, stylesOf, tableLines } from './output.js'
import { plainLine } from './plain-text.js'

/** `lango config show`. Secrets are hidden. */
export async function showConfig(io: Io, flags: Flags): Promise<number> {
  const { config, file, agentFile, model, sources, skipped } = await loadSettings(io, flags, { runs: false })
  const shown = redact(config) as Record<string, unknown>
  if (flags.json) {
    await printJson(io, {
      file: file ?? null,
      agentFile: agentFile ?? null,
      model: model ?? null,
      config: shown,
      sources,
      ...(skipped.length > 0 ? { skipped } : {}),
    })
    return 0
  }
  const { bold, dim } = stylesOf(io, io.stdout)
  const rows = leavesOf(shown).map(([path, value]) => [
    path,
    valueText(value),
    own(sources, path) || 'default',
  ])
  const columns = [
    { title: 'KEY' },
    { title: 'VALUE', flexible: true, least: 16 },
    { title: 'FROM', least: 12 },
  ]
  const [titles = '', ...lines] = tableLines(columns, rows, lineWidth(io))
  const places = [file === undefined ? 'No configuration file.' : `Read from ${file}.`]
  if (agentFile !== undefined) places.push(`Agent file: ${agentFile}.`)
  await print(io, `${[bold(titles), ...lines].join('\n')}\n\n${dim(places.join(' '))}\n`)
  return 0
}

/** `lango config check`: everything that `lango run` checks before it calls a model. */
export async function checkConfig(io: Io, flags: Flags): Promise<number> {
  try {
    const loaded = await loadSettings(io, flags, { runs: false })
    await checkRuntime(loaded)
    if (flags.json) await printJson(io, { ok: true, ...places(loaded), warnings: warningsOf(loaded) })
    else await print(io, okText(io, loaded))
    return 0
  } catch (error) {
    if (!(flags.json && error instanceof AgentError)) throw error
    const { problems = [{ path: '', message: error.message }] } = error.details
    await printJson(io, { ok: false, code: error.code, message: error.message, problems })
    return 1
  }
}

/** `lango config schema`. */
export async function printConfigSchema(io: Io): Promise<number> {
  const { configJsonSchema } = await import('../config/config.js')
  await printJson(io, configJsonSchema())
  return 0
}

/** Every value with its dotted path. Lists and empty objects are values. */
function leavesOf(value: Record<string, unknown>, prefix = ''): (readonly [path: string, value: unknown])[] {
  return Object.entries(value).flatMap(([key, child]) => {
    if (child === undefined) return []
    const isGroup = typeof child === 'object' && child !== null && !Array.isArray(child)
    if (!isGroup || Object.keys(child).length === 0) return [[`${prefix}${key}`, child] as const]
    return leavesOf(child as Record<string, unknown>, `${prefix}${key}.`)
  })
}

function valueText(value: unknown): string {
  return plainLine(typeof value === 'string' ? value : JSON.stringify(value))
}

/** What the schema does not check: that the agent file exports an agent, and that every model has a provider. */
async function checkRuntime(loaded: LoadedSettings): Promise<void> {
  const [options, { checkModels, checkOptions }, { createRegistry }] = await Promise.all([
    runtimeOptions(loaded),
    import('../runtime/check-options.js'),
    import('../provider/provider-registry.js'),
  ])
  const registry = createRegistry(options.providers ?? {})
  checkModels(checkOptions(options), registry)
  if (loaded.model !== undefined) registry.resolve(loaded.model)
}

function warningsOf({ config }: LoadedSettings): string[] {
  const warning = shortTokenWarning(config.server.tokens)
  return warning ? [`${warning.message} ${warning.fix}`] : []
}

function places({ file, agentFile, model, sources, skipped }: LoadedSettings) {
  const left = skipped.length > 0 ? { skipped } : {}
  return { file: file ?? null, agentFile: agentFile ?? null, model: model ?? null, sources, ...left }
}

function okText(io: Io, loaded: LoadedSettings): string {
  const { green, yellow } = stylesOf(io, io.stdout)
  const { file, agentFile, model, sources, skipped } = loaded
  const why = sources['agent.model']?.startsWith('default: ') ? ` (${sources['agent.model'].slice(9)})` : ''
  const lines = [
    `${skipped.length === 0 ? green('ok') : yellow('part')}  ${file ?? 'no configuration file; using defaults'}`,
    ...(agentFile === undefined ? [] : [`    agent  ${agentFile}`]),
    ...(model === undefined ? [] : [`    model  ${model}${why}`]),
    ...Object.entries(sources)
      .filter(([, source]) => source.startsWith('the '))
      .map(([path, source]) => `    ${path}  from ${source}`),
    ...warningsOf(loaded).map(warning => `${yellow('warn')}  ${warning}`),
    ...(skipped.length === 0
      ? []
      : [`    not checked (folder not trusted)  ${plainLine(skipped.join(', '))}`]),
  ]
  return `${lines.join('\n')}\n`
}

/** `lango token new`. Reads no configuration and writes none. */
export async function tokenNew(io: Io, flags: Flags): Promise<number> {
  const token = newToken()
  const hash = hashToken(token)
  if (flags.json) {
    await printJson(io, { token, hash })
    return 0
  }
  await print(
    io,
    `Token, shown only once. Send it as "authorization: Bearer …", or open /login?token=… on the server.
  ${token}

Hash, for the configuration. "user" is the owner of the token.
  "server": { "tokens": { "${hash}": "user" } }
`,
  )
  return 0
}
