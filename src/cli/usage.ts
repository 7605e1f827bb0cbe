import { defined } from '../base/defined.js'
import type { UsageLine } from '../session/spending.js'
import type { Flags } from './command.js'
import type { Io } from './io.js'
import { withStore } from './open-command-store.js'
import { type Column, lineWidth, print, printJson, stylesOf, tableLines } from './output.js'
import { compact } from './wording.js'

/** `lango usage`. */
export async function usage(io: Io, flags: Flags): Promise<number> {
  const { user: userId, model, from, to } = flags
  const query = defined({ userId, model, from, to })
  const lines = await withStore(io, flags, ({ store, app }) =>
    store.spending.usage({ appName: app, ...query }),
  )
  if (flags.json) await printJson(io, { lines, costUsd: costOf(lines) ?? null })
  else if (flags.csv) await print(io, csv(lines))
  else await show(io, lines)
  return 0
}

/** The sum, when all prices were known. */
function costOf(lines: readonly UsageLine[]): number | undefined {
  const sum = lines.reduce((all, { usage: { cost = Number.NaN } }) => all + cost, 0)
  return Number.isNaN(sum) ? undefined : sum
}

const COLUMNS: readonly Column[] = [
  { title: 'DAY' },
  { title: 'USER', least: 6 },
  { title: 'MODEL', flexible: true, least: 12 },
  { title: 'FOR' },
  { title: 'CALLS', align: 'right' },
  { title: 'IN', align: 'right' },
  { title: 'CACHED', align: 'right' },
  { title: 'OUT', align: 'right' },
  { title: 'COST', align: 'right' },
]

async function show(io: Io, lines: readonly UsageLine[]): Promise<void> {
  const { bold, dim } = stylesOf(io, io.stdout)
  if (lines.length === 0) return print(io, 'No model call was counted.\n')
  const rows = lines.map(({ day, userId, model, kind, calls, usage: used, unpricedCalls }) => [
    ...[day, userId, model, kind, compact(calls), compact(used.inputTokens), compact(used.cachedInputTokens)],
    ...[compact(used.outputTokens), unpricedCalls > 0 ? 'unknown' : dollars(used.cost ?? 0)],
  ])
  const [titles = '', ...body] = tableLines([...COLUMNS], rows, lineWidth(io))
  await print(io, `${[bold(titles), ...body].join('\n')}\n`)
  const total = costOf(lines)
  const words = total === undefined ? 'unknown: the price of some calls is not known' : dollars(total)
  await print(io, `${dim(`Total: ${words}. Days are those of UTC.`)}\n`)
}

function dollars(cost: number): string {
  return cost === 0 ? 'free' : `$${cost.toFixed(4)}`
}

/** Fields that a spreadsheet would read as a formula begin with an apostrophe. */
function csv(lines: readonly UsageLine[]): string {
  const head =
    'day,user,model,kind,calls,input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,reasoning_tokens,cost_usd'
  const rows = lines.map(({ day, userId, model, kind, calls, usage: used }) => {
    const tokens = [used.inputTokens, used.cachedInputTokens, used.cacheWriteTokens, used.outputTokens]
    return [day, userId, model, kind, calls, ...tokens, used.reasoningTokens, used.cost ?? '']
      .map(field)
      .join(',')
  })
  return `${[head, ...rows].join('\n')}\n`
}

function field(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
