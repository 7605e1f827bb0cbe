/** Arguments are a JSON object on every wire. A stream that was cut off, or an older store, leaves other things. */
import { isRecord } from '../../base/is-record.js'
import { type Entry, replaceAllParts, type StepContext, toolLabel } from './receipt.js'
import { writable } from './well-formed-text.js'

/** Makes the arguments of every call an object. */
export function fixArguments(entries: readonly Entry[], { report }: StepContext): readonly Entry[] {
  return replaceAllParts(entries, (part, _, entry) => {
    if (part.type !== 'tool-call' || isRecord(part.args)) return part
    const { args, how } = readArguments(part.args)
    const detail = `The arguments of ${toolLabel(part)} were ${how}.`
    report({ step: 'fix-arguments', kind: 'rewrite', at: entry.at, detail })
    return { ...part, args }
  })
}

export interface ReadArguments {
  readonly args: Readonly<Record<string, unknown>>
  /** What was done, as the end of a sentence. */
  readonly how: string
  /** Text that could not be read as JSON. */
  readonly raw?: string
}

const WRAPPED = 'not an object and were wrapped in one'

/** The arguments as an object, whatever was stored. */
export function readArguments(args: unknown): ReadArguments {
  if (isRecord(args)) return { args, how: 'an object already' }
  if (args === undefined || args === null || args === '') return { args: {}, how: 'missing and set to {}' }
  if (typeof args !== 'string') return { args: writable({ value: args }), how: WRAPPED }
  try {
    // Parsing does not recurse, but writing does: what was text may be nested as deeply as it is long.
    const parsed: unknown = JSON.parse(args)
    if (isRecord(parsed)) return { args: writable(parsed), how: 'parsed from their JSON text' }
    return { args: writable({ value: parsed }), how: WRAPPED }
  } catch {
    return {
      args: {},
      raw: args,
      how: `not readable as JSON and set to {}; they were: ${args.slice(0, 200)}`,
    }
  }
}
