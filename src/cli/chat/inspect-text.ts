/** What a model was really sent in a run, in lines: per step stored → cut → repaired → sent. */
import type { InspectedStep, RunInspection } from '../../observe/inspect.js'
import { count } from '../wording.js'
import { formatCost, formatCount } from './format.js'

/** The lines of `/inspect`. */
export function inspectLines(run: RunInspection): string[] {
  const lines = [
    [`run ${run.runId}`, run.agent, run.finishReason ?? 'unfinished'].filter(Boolean).join(' · '),
    ...(run.error ? [`failed: ${run.error.message}`] : []),
  ]
  if (run.steps.length === 0) return [...lines, '', 'Nothing was sent to a model in this run.']
  const shown = run.steps.slice(-SHOWN_STEPS)
  if (shown.length < run.steps.length) {
    lines.push('', `… ${count(run.steps.length - shown.length, 'earlier step')}`)
  }
  for (const step of shown) lines.push('', ...stepLines(step))
  const { usage } = run.total
  const cost = usage.cost === undefined ? '' : ` · ${formatCost(usage.cost)}`
  lines.push(
    '',
    `total: ${count(run.total.requests, 'request')} · ${formatBytes(run.total.bytes)} sent · ` +
      `${count(run.total.repairs, 'repair')} · ${formatCount(usage.inputTokens)} in, ` +
      `${formatCount(usage.outputTokens)} out${cost}`,
  )
  return lines
}

const SHOWN_STEPS = 10
const SHOWN_REPAIRS = 12

function stepLines(step: InspectedStep): string[] {
  const { stored, history, sent, usage } = step
  const lines = [`step ${step.step} · ${step.model} · rules of ${step.profile}`]
  if (stored)
    lines.push(row('stored', `${count(stored.messages, 'message')}, ${formatCount(stored.tokens)} tokens`))
  if (step.cuts.length === 0) lines.push(row('cut', 'nothing'))
  for (const cut of step.cuts) {
    const limit = cutLimit(cut)
    const shortened = cut.shortened.map(
      ({ name, fromTokens, toTokens }) =>
        `${name}'s output shortened from ${formatCount(fromTokens)} to ${formatCount(toTokens)} tokens`,
    )
    const left =
      cut.messages > 0
        ? [`${count(cut.messages, 'message')}, ${formatCount(cut.tokens)} tokens, ${limit}`]
        : []
    lines.push(row('cut', [...left, ...shortened].join('; ')))
  }
  if (history) {
    lines.push(row('history', `${count(history.messages, 'message')}, ${formatCount(history.tokens)} tokens`))
  }
  if (step.repairs.length === 0) lines.push(row('repaired', 'nothing'))
  for (const [index, { step: name, detail }] of step.repairs.slice(0, SHOWN_REPAIRS).entries()) {
    lines.push(row(index === 0 ? 'repaired' : '', `${name}: ${detail}`))
  }
  const more = step.repairs.length - SHOWN_REPAIRS
  if (more > 0) lines.push(row('', `… ${count(more, 'more repair')}`))
  const mapped = Object.keys(step.mappedIds).length
  if (mapped > 0) lines.push(row('ids', `${count(mapped, 'call id')} rewritten for the wire`))
  lines.push(row('sent', `${count(sent.messages, 'message')}, ${formatBytes(sent.bytes)}`))
  if (usage) {
    const cached = usage.cachedInputTokens > 0 ? ` (${formatCount(usage.cachedInputTokens)} cached)` : ''
    const counted = `${formatCount(usage.inputTokens)} in${cached}, ${formatCount(usage.outputTokens)} out`
    lines.push(row('counted', usage.cost === undefined ? counted : `${counted}, ${formatCost(usage.cost)}`))
  }
  return lines
}

function cutLimit({
  reason,
  budgetTokens,
  maxMessages,
  keptMessages,
}: InspectedStep['cuts'][number]): string {
  if (reason === 'message-limit') return `to keep ${count(maxMessages ?? keptMessages, 'message')}`
  return budgetTokens === undefined ? 'by the token budget' : `to fit ${formatCount(budgetTokens)} tokens`
}

function row(name: string, text: string): string {
  return `  ${name.padEnd(9)} ${text}`
}

function formatBytes(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KB`
}
