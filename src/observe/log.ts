/**
 * The log, written by pino. Keys and tokens are never written. Texts of users, models and tools are not written
 * by default: such fields are replaced by their size.
 */

import { breaksIn, withoutBreaks } from '../base/prefix-break.js'
import { HIDDEN, isPlain, isSecretName, redactText } from '../base/redact.js'
import { checkOptions, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RunEvent } from '../run/run-event.js'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export interface LogOptions {
  /** Default `info`. */
  level?: LogLevel | undefined
  /** Lines for people instead of JSON. Default: when the destination is a terminal. */
  pretty?: boolean | undefined
  /** A file's path, or something to write lines to. Default: standard error. */
  destination?: string | LogDestination | undefined
  /** Write the texts of users, models and tools. Default false. */
  content?: boolean | undefined
}

export interface LogDestination {
  write(line: string): unknown
}

export interface ClosableLogger extends Logger {
  /** Flushes and closes the file. */
  close(): void
}

/**
 * Opens a log. pino is loaded here and nowhere else.
 *
 * ```ts
 * import { createLogger, createRuntime } from 'lango'
 *
 * const logger = await createLogger({ level: 'debug', destination: './lango.log' })
 * const runtime = await createRuntime({ store: 'memory:', agent: { model: 'demo/demo' }, logger })
 * await runtime.runAndCollect({ text: 'Hello' })
 * await runtime.close()
 * ```
 */
export async function createLogger(options: LogOptions = {}): Promise<ClosableLogger> {
  checkOptions(options, 'createLogger')
  const { pino } = await import('pino')
  const { destination = process.stderr, content = false } = options
  // Written at once: the last line before a crash is the one that matters.
  const file =
    typeof destination === 'string'
      ? pino.destination({ dest: destination, sync: true, mkdir: true })
      : undefined
  const target = file ?? (destination as LogDestination)
  const pretty = options.pretty ?? ('isTTY' in target && target.isTTY === true)
  const log = pino(
    {
      level: options.level ?? 'info',
      base: null,
      messageKey: 'message',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: label => ({ level: label }) },
    },
    pretty
      ? { write: (line: string) => void target.write(prettyLine(line)) }
      : (target as { write(line: string): void }),
  )
  const write =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
      if (log.isLevelEnabled(level)) log[level](loggable(fields, content), redactText(message))
    }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    close: () => file?.end(),
  }
}

/** Fields as they may be written: secrets hidden, content counted, errors in words, sizes bounded. */
function loggable(fields: Readonly<Record<string, unknown>>, content: boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => !RESERVED.has(name))
      .map(([name, value]) => [name, loggableValue(name, value, content, 0)]),
  )
}

/** pino's own keys: a field of that name would make a line with two of them. */
const RESERVED = new Set(['level', 'time', 'message'])

/** Names of fields that hold texts of users, models and tools. */
const CONTENT_NAMES =
  /^(text|content|contents|parts?|args|arguments|input|output|result|response|body|messages|prompt|instruction|systemInstruction|answer|reasoning|detail|stateDelta)$/

const MAXIMUM_DEPTH = 6
const MAXIMUM_ITEMS = 100
const MAXIMUM_CHARACTERS = 10_000

function loggableValue(name: string, value: unknown, content: boolean, depth: number): unknown {
  if (value === undefined || value === null || typeof value === 'number' || typeof value === 'boolean')
    return value
  if (isSecretName(name)) return HIDDEN
  if (!content && CONTENT_NAMES.test(name)) return `[${sizeOf(value)} characters]`
  if (value instanceof Error) return errorFields(value)
  if (typeof value === 'string') return redactText(value.slice(0, MAXIMUM_CHARACTERS))
  if (typeof value !== 'object') return `[${typeof value}]`
  if (depth >= MAXIMUM_DEPTH) return '[too deep]'
  if (Array.isArray(value)) {
    return value.slice(0, MAXIMUM_ITEMS).map(item => loggableValue(name, item, content, depth + 1))
  }
  if (!isPlain(value)) return `[${value.constructor?.name ?? 'object'}]`
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, MAXIMUM_ITEMS)
      .map(([key, item]) => [key, loggableValue(key, item, content, depth + 1)]),
  )
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  try {
    return JSON.stringify(value)?.length ?? 0
  } catch {
    return 0
  }
}

function errorFields(error: Error): Record<string, unknown> {
  const code: unknown = Reflect.get(error, 'code')
  return {
    name: error.name,
    ...(typeof code === 'string' ? { code } : {}),
    message: redactText(error.message.slice(0, MAXIMUM_CHARACTERS)),
  }
}

/** The stack of an error and of the errors that caused it, bounded, for defects. */
export function stackFields(error: unknown): { stack?: string } {
  const stacks: string[] = []
  let current = error
  for (let depth = 0; depth < 5 && current instanceof Error; depth++) {
    stacks.push(current.stack ?? `${current.name}: ${current.message}`)
    current = current.cause
  }
  return stacks.length === 0 ? {} : { stack: stacks.join('\nCaused by: ').slice(0, MAXIMUM_CHARACTERS) }
}

function prettyLine(line: string): string {
  const { level, time, message, ...fields } = JSON.parse(line) as Record<string, unknown>
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`)
  return `${String(time).slice(11, 19)} ${String(level).toUpperCase().padEnd(5)} ${String(message)}${rest.join('')}\n`
}

/** Called with the events of all runs. */
type RunObserver = (event: RunEvent) => void

/** Passes every event to all observers. An observer that throws is logged and does not affect the run. */
export function joinObservers<Item extends { runId?: string } = RunEvent>(
  observers: readonly ((item: Item) => void)[],
  logger: Logger,
): (item: Item) => void {
  return item => {
    for (const observe of observers) {
      try {
        observe(item)
      } catch (error) {
        logger.warn('An observer of runs failed', { runId: item.runId, error: messageOf(error) })
      }
    }
  }
}

/** Logs runs: start and end at `info`, steps at `debug`. No content. */
export function logRuns(logger: Logger): RunObserver {
  return event => {
    const line = lineOf(event)
    if (!line) return
    const [level, message, fields] = line
    logger[level](message, { sessionId: event.sessionId, runId: event.runId, ...fields })
  }
}

type Line = [level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: Record<string, unknown>]

function lineOfModel(event: Extract<RunEvent, { type: 'model-switch' | 'model-wait' }>): Line {
  const { sessionId: _session, runId: _run, seq: _seq, type, ...fields } = event
  return type === 'model-wait'
    ? ['info', 'Model call waits', fields]
    : ['warn', 'Another model answers', fields]
}

function acceptedLine(event: Extract<RunEvent, { type: 'run-queued' | 'run-scheduled' }>): Line {
  return event.type === 'run-queued'
    ? ['info', 'Run queued', { place: event.place }]
    : ['info', 'Run scheduled', { dueAt: event.dueAt }]
}

function repairLine({ model, profile, repairs }: Extract<RunEvent, { type: 'repair' }>): Line {
  const [changes, breaks] = [withoutBreaks(repairs), breaksIn(repairs)]
  const steps = [...new Set(changes.map(({ step }) => step))]
  const broken = breaks.length > 0 ? { breaks: breaks.map(({ reason, tokens }) => ({ reason, tokens })) } : {}
  if (changes.length === 0) return ['info', 'Prompt prefix changed', { model, profile, ...broken }]
  return ['info', 'History repaired', { model, profile, repairs: changes.length, steps, ...broken }]
}

function lineOf(event: RunEvent): Line | undefined {
  switch (event.type) {
    case 'run-queued':
    case 'run-scheduled':
      return acceptedLine(event)
    case 'tool-unknown': {
      const { name: tool, id: callId, policy, answer } = event
      const fields = { tool, callId, policy, ...(answer ? { answer } : {}) }
      return ['warn', 'Outcome of a tool call is unknown', fields]
    }
    case 'run-start':
      return ['info', 'Run started', { agent: event.agent, model: event.model }]
    case 'run-resumed':
      return ['info', 'Run resumed', { attempt: event.attempt, replayedSteps: event.replayedSteps }]
    case 'step-restart':
      return ['info', 'Model step restarted', { step: event.step }]
    case 'model-switch':
    case 'model-wait':
      return lineOfModel(event)
    case 'tools-missing':
      return ['warn', 'Tools are missing', { server: event.server, problem: event.problem }]
    case 'tool-call':
      return ['debug', 'Tool called', { author: event.author, tool: event.name, callId: event.id }]
    case 'tool-result': {
      const { name: tool, id: callId, isError } = event
      return ['debug', isError ? 'Tool failed' : 'Tool returned', { tool, callId, isError }]
    }
    case 'agent-transfer':
      return ['debug', 'Agent transfer', { from: event.from, to: event.to }]
    case 'repair':
      return repairLine(event)
    case 'history-cut': {
      const { shortened, ...cut } = event.cut
      return ['debug', 'History truncated', { ...cut, shortened: shortened.length }]
    }
    case 'wrap-up':
      return ['warn', 'Run limit reached', { reason: event.reason, turns: event.turns }]
    case 'approval-request':
      return ['info', 'Approval requested', { tool: event.name, callId: event.id }]
    case 'approval-answer':
      return ['info', 'Approval answered', { tool: event.name, callId: event.id, outcome: event.answer }]
    case 'usage':
      return ['debug', 'Model answered', { author: event.author, model: event.model, usage: event.usage }]
    case 'error': {
      const { code, retryable, message } = event.error
      const fields = { code, retryable, reason: message }
      // A defect is found by its stack; the errors of providers and stores say what failed.
      const stack = code === 'internal' || code === 'agent-failed' ? stackFields(event.error) : {}
      return ['error', 'Run failed', { ...fields, ...stack }]
    }
    case 'run-finish': {
      const { finishReason, turns, delegations, usage } = event
      const words = finishReason === 'waiting' ? 'Run waits for a person' : 'Run finished'
      return ['info', words, { finishReason, turns, delegations, usage }]
    }
    case 'text-delta':
    case 'reasoning-delta':
    case 'sources':
    case 'code':
    case 'turn-warning':
      // Deltas, sources and code are content, and the run loop logs the warning itself.
      return undefined
    default:
      event satisfies never
      return undefined
  }
}
