/** What a run waits for, in words. */
import { INPUT_TOOL } from '../base/names.js'
import type { RunQuestion } from '../run/open-questions.js'

/** A question as people read it, without the arguments of its call. */
export function questionText({ tool, args, asks, reason, needsResult }: RunQuestion): string {
  if (asks === 'result') {
    const asked = tool === INPUT_TOOL && args.message
    return typeof asked === 'string' && asked !== ''
      ? `the workflow asks: ${asked}`
      : `${tool} waits for its result (an object)`
  }
  return asks === 'approval'
    ? `${reason === undefined ? '' : `${reason} `}${tool} needs approval (once, always or no)`
    : `it is not known whether ${tool} took effect (${needsResult ? 'happened with its result' : 'happened'}, run or leave)`
}

/** An answer as an example. */
export function answerExample({ tool, asks, needsResult }: RunQuestion): string {
  const result = tool === INPUT_TOOL ? `'{"result":"…"}'` : `'{"status":"done"}'`
  const outcome = needsResult ? `'{"happened":true,"result":…}'` : 'happened'
  return { approval: 'once', outcome, result }[asks]
}
