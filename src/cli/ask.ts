import { createInterface } from 'node:readline'
import { parseJson } from '../base/json.js'
import type { RunAnswer } from '../tool.js'
import type { Io } from './io.js'
import { note } from './output.js'
import { fitText, plainLine } from './plain-text.js'

/** Whether input and error output are a terminal, so that a question can be asked. */
export function canAsk(io: Io): boolean {
  return io.stdin.isTTY === true && io.stderr.isTTY === true
}

/** Asks on standard error and reads one line, in lower case. The end of input and an abort count as no answer. */
export async function ask(io: Io, question: string, signal?: AbortSignal): Promise<string> {
  return ((await askLine(io, question, signal)) ?? '').trim().toLowerCase()
}

/** Asks on standard error and reads one line; `undefined` at the end of input and after an abort. */
export function askLine(io: Io, question: string, signal?: AbortSignal): Promise<string | undefined> {
  return new Promise(resolve => {
    const terminal = createInterface({ input: io.stdin, output: io.stderr })
    let answer: string | undefined
    const end = () => terminal.close()
    terminal.on('close', () => {
      signal?.removeEventListener('abort', end)
      resolve(answer)
    })
    // While readline reads a line, Ctrl-C is an event and raises no signal.
    terminal.on('SIGINT', () => {
      end()
      io.raise('SIGINT')
    })
    signal?.addEventListener('abort', end, { once: true })
    terminal.question(question, line => {
      answer = line
      end()
    })
  })
}

interface AskedCall {
  name: string
  args: Readonly<Record<string, unknown>>
  needsResult?: boolean | undefined
}

/** Asks whether a call took effect, and what it returned where that is needed. No answer leaves it unknown. */
export async function askOutcome(
  io: Io,
  { name, args, needsResult }: AskedCall,
  signal: AbortSignal,
): Promise<RunAnswer> {
  note(io, `It is not known whether ${name} took effect: ${fitText(plainLine(JSON.stringify(args)), 4000)}`)
  const said = await ask(io, 'It [h]appened, it did not: [r]un it, [L]eave it: ', signal)
  if (said.startsWith('h') && needsResult) {
    const result = await askLine(io, 'What it returned, as JSON: ', signal)
    return result === undefined ? 'leave' : { happened: true, result: parseJson(result) }
  }
  if (said.startsWith('h')) return 'happened'
  return said.startsWith('r') ? 'run' : 'leave'
}
