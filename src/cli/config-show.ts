import { own } from '../base/own.js'
import { redact } from '../base/redact.js'
import type { Flags } from './command.js'
import { loadSettings } from './open-runtime.js'
import { lineWidth, print, printJson, stylesOf } from './output.js'
import { plainLine } from './plain-text.js'
import { tableLines } from './table.js'

/** `lango config show`. Keys are hidden. */
export async function showConfig(flags: Flags): Promise<number> {
  const { config, file, agentFile, model, sources, skipped } = await loadSettings(flags, { runs: false })
  const shown = redact(config) as Record<string, unknown>
  if (flags.json) {
    await printJson({
      file: file ?? null,
      agentFile: agentFile ?? null,
      model: model ?? null,
      config: shown,
      sources,
      ...(skipped.length > 0 ? { skipped } : {}),
    })
    return 0
  }
  const { bold, dim } = stylesOf(process.stdout)
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
  const [titles = '', ...lines] = tableLines(columns, rows, lineWidth())
  const places = [file === undefined ? 'No configuration file.' : `Read from ${file}.`]
  if (agentFile !== undefined) places.push(`The agent is ${agentFile}.`)
  await print(`${[bold(titles), ...lines].join('\n')}\n\n${dim(places.join(' '))}\n`)
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
