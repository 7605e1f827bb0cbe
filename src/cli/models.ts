import { suggest } from '../base/suggest.js'
import { AgentError } from '../errors.js'
import type { ModelChoice } from '../runtime/info.js'
import { isFree } from '../session/usage.js'
import type { Flags } from './command.js'
import type { Io } from './io.js'
import { loadSettings } from './open-runtime.js'
import { type Column, lineWidth, print, printJson, stylesOf, tableLines } from './output.js'

import { compact } from './wording.js'

/** `lango models`. */
export async function models(io: Io, flags: Flags): Promise<number> {
  const [{ config, env, model }, { listModels, listProviders, pricesAsOf }] = await Promise.all([
    loadSettings(io, flags, { runs: false }),
    import('../runtime/models.js'),
  ])
  // The schema has checked it: options, or a provider made in code.
  const options = {
    providers: config.providers as NonNullable<Parameters<typeof listModels>[0]>['providers'],
    env,
  }
  const providers = listProviders(options)
  const { provider } = flags
  if (provider !== undefined && !providers.some(each => each.provider === provider)) {
    const names = providers.map(each => each.provider)
    const near = suggest(provider, names)
    const fix = near === undefined ? `Known providers: ${names.join(', ')}.` : `Did you mean ${near}?`
    throw new AgentError('invalid-argument', `Unknown provider "${provider}". ${fix}`)
  }
  const found = listModels(options).filter(each => provider === undefined || each.provider === provider)
  const shown = providers.filter(each => provider === undefined || each.provider === provider)
  if (flags.json) await printJson(io, { default: model ?? null, models: found, providers: shown })
  else await show(io, found, shown, { model, pricesAsOf })
  return 0
}

type ShownProvider = ReturnType<ListProviders>[number]

type ListProviders = typeof import('../runtime/models.js').listProviders

async function show(
  io: Io,
  found: readonly ModelChoice[],
  providers: readonly ShownProvider[],
  { model, pricesAsOf }: { model: string | undefined; pricesAsOf: string },
): Promise<void> {
  const { bold, dim } = stylesOf(io, io.stdout)
  if (found.length > 0) {
    const [titles = '', ...lines] = modelTable(found, lineWidth(io))
    await print(io, `${[bold(titles), ...lines].join('\n')}\n\n`)
  }
  const bare = providers.filter(({ provider }) => !found.some(each => each.provider === provider))
  if (bare.length > 0) {
    const names = bare.map(each => `${each.provider} (${keyState(each)})`)
    await print(
      io,
      `Any model of these providers, as provider/model:\n${names.map(name => `  ${name}\n`).join('')}\n`,
    )
  }
  const named = model ?? 'the model of the agent'
  const missing = providers.filter(({ provider }) =>
    found.some(each => each.provider === provider && !each.keyPresent),
  )
  if (missing.length > 0) {
    const variables = missing.map(({ keyVariable }) => keyVariable).join(', ')
    await print(io, `Missing keys: set ${variables}.\n`)
  }
  await print(io, `${dim(`Prices in $ per million tokens, ${pricesAsOf}.\nDefault model: ${named}.`)}\n`)
}

function keyState({ keyPresent, keyVariable, findsCredentials, missingVariable }: ShownProvider): string {
  if (keyVariable === undefined) return 'no key needed'
  const otherwise = findsCredentials ? ', or credentials of the machine' : ''
  const key = `${keyVariable}${keyPresent ? ' is set' : otherwise}`
  return missingVariable === undefined ? key : `${key}; ${missingVariable} is missing`
}

/** The lines of the table. */
export function modelTable(found: readonly ModelChoice[], width: number): string[] {
  const columns: Column[] = [
    { title: 'MODEL', least: 20 },
    { title: 'WINDOW', align: 'right' },
    { title: 'OUTPUT', align: 'right' },
    { title: 'IN $', align: 'right' },
    { title: 'OUT $', align: 'right' },
    { title: 'PROFILE', flexible: true, least: 10 },
    { title: 'KEY' },
  ]
  const rows = found.map(each => [
    each.reference,
    compact(each.contextWindow),
    compact(each.outputLimit),
    ...pricesOf(each),
    each.profile,
    keyWords(each),
  ])
  return tableLines(columns, rows, width)
}

function pricesOf({ price }: ModelChoice): [input: string, output: string] {
  if (!price) return ['', '']
  return isFree(price) ? ['free', 'free'] : [String(price.input), String(price.output)]
}

function keyWords({ keyPresent, keyVariable }: ModelChoice): string {
  if (keyVariable === undefined) return 'not needed'
  return keyPresent ? 'yes' : 'no'
}
