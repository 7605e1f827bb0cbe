// What differs between two ways to run one agent, as a list of names. Some things never count: ids, times, the order of
// keys, token counts (the servers estimate them from the bodies), the form of a call id, and a schema in Gemini's dialect
// against the same schema in JSON. Everything else counts, and `expected-differences.ts` says which names may occur.
import type { Event } from '@google/adk'
import { toJsonSchema } from '../../src/adk/model/convert-config.js'
import { toJsonData } from '../../src/base/json.js'
import type { Observation, ParityCase } from './parity.js'

/** The names of all differences, sorted. */
export function differences(
  bare: Observation,
  other: Observation,
  { isUnordered, isTimed }: ParityCase,
): string[] {
  const found = new Set<string>()
  const differ = (name: string, one: unknown, two: unknown) => {
    if (canonical(one, isUnordered) !== canonical(two, isUnordered)) found.add(name)
  }
  differ('model calls', bare.modelCalls, other.modelCalls)
  differ('tool and callback calls', bare.journal, other.journal)
  differ('state', withoutIds(bare), withoutIds(other))
  differ('failure', bare.errors.length > 0, other.errors.length > 0)
  if (!isUnordered) differ('text', bare.text, other.text)
  for (const rule of new Set(bare.violations))
    if (!other.violations.includes(rule)) found.add('refused request')
  for (const rule of new Set(other.violations))
    if (!bare.violations.includes(rule)) found.add(`refused by ${rule}`)
  if (other.strays > 0) found.add('a model outside Lango')
  if (isTimed) return [...found].sort()
  for (const name of requestDifferences(bare, other, isUnordered)) found.add(name)
  for (const name of eventDifferences(bare.events, other.events, isUnordered)) found.add(name)
  return [...found].sort()
}

function requestDifferences(bare: Observation, other: Observation, isUnordered = false): string[] {
  const read = ({ bodies }: Observation) => {
    const list = bodies.map(readBody)
    return isUnordered ? merged(list).map(withSortedParts).sort(byText) : list
  }
  const [mine, theirs] = [read(bare), read(other)]
  const found: string[] = []
  if (canonical(merged(mine)) === canonical(merged(theirs)) && canonical(mine) !== canonical(theirs))
    found.push('roles alternate')
  merged(mine).forEach((body, index) => {
    const sent = merged(theirs)[index]
    if (!sent) return
    for (const key of new Set([...Object.keys(body), ...Object.keys(sent)]))
      if (canonical(body[key]) !== canonical(sent[key])) found.push(`request ${key}`)
  })
  return found
}

type Body = Record<string, unknown>

/** A body of Gemini's `generateContent`, each setting under a name of its own. */
function readBody(body: Body): Body {
  const { contents, systemInstruction, tools, generationConfig, ...others } = body
  const settings = Object.entries((generationConfig ?? {}) as Body).map(([key, value]) =>
    key.endsWith('Schema') ? ['responseSchema', toJsonSchema(value)] : [key, value],
  )
  return {
    ...others,
    ...Object.fromEntries(settings),
    contents: (contents as WireContent[]).map(({ role, parts = [] }) => ({
      role,
      parts: parts.map(readPart),
    })),
    system: textOf(systemInstruction),
    tools: ((tools ?? []) as Body[]).flatMap(readTool),
  }
}

interface WireContent {
  role?: string
  parts?: Body[]
}

function readPart(part: Body): Body {
  return JSON.parse(
    JSON.stringify(part, (key, value) => (key === 'thoughtSignature' || key === 'id' ? undefined : value)),
  )
}

function textOf(instruction: unknown): string {
  return ((instruction as WireContent | undefined)?.parts ?? []).map(({ text }) => text).join('\n')
}

/** One entry per declared function and per tool of Gemini's own. */
function readTool(tool: Body): unknown[] {
  const { functionDeclarations = [], ...own } = tool
  const declared = (functionDeclarations as Body[]).map(
    ({ name, description, parameters, parametersJsonSchema }) => ({
      name,
      description,
      parameters: withoutNothing(toJsonSchema(parametersJsonSchema ?? parameters)),
    }),
  )
  return Object.keys(own).length > 0 ? [...declared, own] : declared
}

/** Declarations without parameters are written in several ways. */
function withoutNothing(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return undefined
  const { properties, $schema: _dialect, additionalProperties: _closed, ...rest } = schema as Body
  const isEmpty = !properties || Object.keys(properties).length === 0
  return isEmpty ? undefined : { ...rest, properties }
}

/** Neighbours of one role as one content. */
function merged(bodies: readonly Body[]): Body[] {
  return bodies.map(body => {
    const contents: { role?: string | undefined; parts: Body[] }[] = []
    for (const { role, parts = [] } of body.contents as WireContent[]) {
      const last = contents.at(-1)
      if (last && last.role === role) last.parts.push(...parts)
      else contents.push({ role, parts: [...parts] })
    }
    return { ...body, contents }
  })
}

/** What parallel agents said stands in a content in any order. */
function withSortedParts(body: Body): Body {
  const contents = (body.contents as Required<WireContent>[]).map(({ role, parts }) => ({
    role,
    parts: [...parts].sort(byText),
  }))
  return { ...body, contents }
}

function eventDifferences(bare: readonly Event[], other: readonly Event[], isUnordered = false): string[] {
  const [mine, theirs] = [viewEvents(bare), viewEvents(other)]
  if (canonical(mine, isUnordered) === canonical(theirs, isUnordered)) return []
  const spoken = viewEvents(bare.filter(event => !isStateOnly(event)))
  if (canonical(spoken, isUnordered) === canonical(theirs, isUnordered)) return ['events of state alone']
  return ['events']
}

/** Besides its identity it has a state delta, and nothing else. */
function isStateOnly(event: Event): boolean {
  const { stateDelta, ...actions } = event.actions
  return !event.content && !event.errorCode && Object.keys(stateDelta).length > 0 && isNothing(actions)
}

/** The state with the calls that it names by number. */
function withoutIds({ state, events }: Observation): unknown {
  return renamed(toJsonData(state), namesOf(events))
}

/** Events without what is different in every run: ids become numbers in order of appearance. */
export function viewEvents(events: readonly Event[]): unknown[] {
  const names = namesOf(events)
  return events.map(event => renamed(toJsonData(viewEvent(event)), names))
}

/** Numbers for runs and calls, in order of appearance. */
function namesOf(events: readonly Event[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  const counts = new Map<string, number>()
  const name = (id: string | undefined, kind: string) => {
    if (!id || names.has(id)) return
    const count = (counts.get(kind) ?? 0) + 1
    counts.set(kind, count)
    names.set(id, `${kind}-${count}`)
  }
  for (const { invocationId, content } of events) {
    name(invocationId, 'run')
    for (const { functionCall } of content?.parts ?? [])
      name(functionCall?.id, `call-of-${functionCall?.name}`)
  }
  return names
}

function renamed(value: unknown, names: ReadonlyMap<string, string>): unknown {
  let text = JSON.stringify(value)
  for (const [id, name] of names) text = text.replaceAll(id, name)
  return JSON.parse(text) as unknown
}

interface Times {
  modelVersion?: string
  /** Of a compaction. */
  startTime?: number
  endTime?: number
}

function viewEvent(event: Event): Body {
  const {
    id: _id,
    timestamp: _time,
    usageMetadata: _usage,
    partial: _partial,
    turnComplete: _complete,
    ...rest
  } = event
  const {
    modelVersion: _version,
    startTime: _start,
    endTime: _end,
    actions,
    ...fields
  } = rest as Event & Times
  const parts = (fields.content?.parts ?? []).map(({ thoughtSignature: _signature, ...part }) => part)
  return Object.fromEntries(
    Object.entries({
      ...fields,
      content: fields.content ? { role: fields.content.role, parts } : undefined,
      actions: Object.fromEntries(Object.entries(actions).filter(([, value]) => !isNothing(value))),
    }).filter(([, value]) => !isNothing(value)),
  )
}

function isNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true
  if (typeof value !== 'object') return false
  return Object.values(value).every(isNothing)
}

function byText(one: unknown, two: unknown): number {
  return canonical(one).localeCompare(canonical(two))
}

/** JSON with sorted keys; lists sorted too where their order says nothing. */
function canonical(value: unknown, isUnordered = false): string {
  const text = JSON.stringify(value, (_key, field: unknown) =>
    typeof field === 'object' && field !== null && !Array.isArray(field)
      ? Object.fromEntries(Object.entries(field).sort(([one], [two]) => one.localeCompare(two)))
      : field,
  )
  if (!isUnordered || !Array.isArray(value)) return text ?? ''
  return JSON.stringify(value.map(item => canonical(item)).sort())
}
