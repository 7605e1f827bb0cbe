import { own } from '../base/own.js'
import { isPlain } from '../base/redact.js'
import type { PlaceKind } from './schema-walk.js'

export type Environment = Readonly<Record<string, string | undefined>>

export interface EnvironmentVariable {
  name: string
  /** The key that it sets. */
  path: readonly string[]
  description: string
  /** False for values that are meant for another program. */
  accepts?: (value: string) => boolean
  /** Values of its own, in lower case, and what they mean for the key. */
  values?: Readonly<Record<string, unknown>>
}

/** Variables that set a key. Where two set the same one, the earlier wins. */
export const ENVIRONMENT_VARIABLES: readonly EnvironmentVariable[] = [
  { name: 'LANGO_APP', path: ['app'], description: 'The app that sessions belong to.' },
  { name: 'LANGO_MODEL', path: ['agent', 'model'], description: 'The root agent’s model.' },
  { name: 'LANGO_STORE', path: ['store'], description: 'Where sessions are stored.' },
  {
    name: 'DATABASE_URL',
    path: ['store'],
    description: 'Like `LANGO_STORE`, but set by hosting platforms. Only a `postgres://` URL is used.',
    accepts: value => /^postgres(ql)?:\/\//i.test(value),
  },
  {
    name: 'LANGO_MAX_TURNS',
    path: ['limits', 'maxTurns'],
    description: 'Maximum number of turns with tool calls in one run.',
  },
  {
    name: 'LANGO_TOKEN_BUDGET',
    path: ['history', 'maxMessageTokenBudget'],
    description: 'Maximum number of history tokens sent to a model, or `off`.',
  },
  {
    name: 'LANGO_WORKSPACE',
    path: ['tools', 'workspace'],
    description: 'The folder that tools are restricted to.',
  },
  { name: 'LANGO_PORT', path: ['server', 'port'], description: 'The port to listen on.' },
  { name: 'PORT', path: ['server', 'port'], description: 'Like `LANGO_PORT`, but set by hosting platforms.' },
  { name: 'LANGO_HOST', path: ['server', 'host'], description: 'The address to listen on.' },
  {
    name: 'LANGO_TOKENS',
    path: ['server', 'tokens'],
    description: 'The server’s tokens, separated by commas.',
  },
  { name: 'LANGO_LOG_LEVEL', path: ['log', 'level'], description: 'The minimum log level.' },
  { name: 'LANGO_LOG_FILE', path: ['log', 'file'], description: 'The log file.' },
  {
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    path: ['telemetry', 'endpoint'],
    description: 'The OpenTelemetry collector.',
  },
  {
    name: 'OTEL_SERVICE_NAME',
    path: ['telemetry', 'serviceName'],
    description: 'The service name of the spans and metrics.',
  },
  {
    name: 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT',
    path: ['telemetry', 'content'],
    description:
      'Record content in spans: `true`, `SPAN_ONLY` or `SPAN_AND_EVENT`. With `false`, `NO_CONTENT` or `EVENT_ONLY` it is not recorded: Lango emits no events.',
    values: { span_only: true, span_and_event: true, no_content: false, event_only: false },
  },
  {
    name: 'OTEL_METRICS_EXPORTER',
    path: ['telemetry', 'metrics'],
    description: '`none`: no metrics are sent.',
    accepts: value => /^(none|otlp)$/i.test(value),
    values: { none: false, otlp: true },
  },
]

/** The settings of the environment, and which variable sets which key. */
export interface FromEnvironment {
  config: Record<string, unknown>
  variables: Record<string, string>
}

/** Reads the variables. An empty variable counts as absent. */
export function readEnvironment(env: Environment, place: PlaceReader): FromEnvironment {
  const config: Record<string, unknown> = {}
  const variables: Record<string, string> = {}
  for (const { name, path, accepts, values } of ENVIRONMENT_VARIABLES) {
    const text = env[name]?.trim()
    const key = path.join('.')
    if (!text || key in variables || accepts?.(text) === false) continue
    variables[key] = name
    setAt(config, path, (values && own(values, text.toLowerCase())) ?? valueFor(place, path, text))
  }
  return { config, variables }
}

function setAt(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [first, ...rest] = path
  if (first === undefined) return
  if (rest.length === 0) {
    target[first] = value
    return
  }
  const below = target[first]
  const inner = isPlain(below) ? below : {}
  target[first] = inner
  setAt(inner, rest, value)
}

/** Returns the kinds of value that a place of the configuration takes. */
export type PlaceReader = (path: readonly PropertyKey[]) => readonly PlaceKind[]

/** A text from the environment, converted to a kind of value that its place takes, or unchanged. */
export function valueFor(place: PlaceReader, path: readonly PropertyKey[], text: string): unknown {
  const kinds = place(path)
  if (kinds.includes('number') && /^[+-]?\d+(\.\d+)?$/.test(text)) return Number(text)
  if (kinds.includes('boolean')) return FLAGS.get(text.toLowerCase()) ?? text
  if (kinds.includes('list')) {
    return text
      .split(',')
      .map(item => item.trim())
      .filter(item => item !== '')
  }
  return text
}

const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['yes', true],
  ['on', true],
  ['false', false],
  ['0', false],
  ['no', false],
  ['off', false],
])
