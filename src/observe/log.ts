/**
 * The log, written by pino. Whatever is handed to it, no key is written, and by default nothing that a user, a
 * model or a tool said: such fields become a note of their size.
 */
import { HIDDEN, isPlain, isSecretName, redactText } from '../base/redact.js'
import type { Logger } from '../logger.js'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export interface LogOptions {
  /** Default `info`. */
  level?: LogLevel | undefined
  /** Lines for people instead of JSON. Default: when the destination is a terminal. */
  pretty?: boolean | undefined
  /** A file's path, or something to write lines to. Default: standard error. */
  destination?: string | LogDestination | undefined
  /** Write what users, models and tools say. Default false. */
  content?: boolean | undefined
}

export interface LogDestination {
  write(line: string): unknown
}

export interface ClosableLogger extends Logger {
  /** Writes what is left and closes the file. */
  close(): void
}

/** Opens a log. pino is loaded here and nowhere else. */
export async function createLogger(options: LogOptions = {}): Promise<ClosableLogger> {
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

/** Names under which words of users, models and tools travel. */
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

function prettyLine(line: string): string {
  const { level, time, message, ...fields } = JSON.parse(line) as Record<string, unknown>
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`)
  return `${String(time).slice(11, 19)} ${String(level).toUpperCase().padEnd(5)} ${String(message)}${rest.join('')}\n`
}
