/**
 * The steps of an answer that must be JSON. The content of such an answer is the JSON of the last step and nothing else:
 *
 * - What the agent says before it calls a tool of its own, and an answer that was corrected, become reasoning.
 * - A stream gets the JSON as it is written. One that was corrected after a part of it was sent ends with an error.
 */
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../../base/defined.js'
import { parseJson } from '../../../base/json.js'
import { AgentError } from '../../../errors.js'
import { firstSeqOfText } from '../../../run/event-numbers.js'
import type { Problem } from '../../chat-protocol.js'
import { runProblem } from '../start-run.js'
import type { CompletionStep, StepPlace } from './completion-run.js'

/** `isStreamed`: what was handed out cannot be taken back. */
export async function* jsonAnswer(
  steps: AsyncIterable<CompletionStep>,
  { isStreamed }: { isStreamed: boolean },
): AsyncGenerator<CompletionStep> {
  const answer = new JsonAnswer(isStreamed)
  for await (const step of steps) yield* answer.take(step)
}

class JsonAnswer {
  readonly #isStreamed: boolean
  /** What the current step has written and was not handed out. */
  #held = ''
  /** Whether the first character of that is one of JSON. */
  #beginsJson = false
  /** What was handed out. */
  #sent = ''
  /** Something was written after what was handed out, by another step. */
  #isVoid = false
  #isStepOver = false

  constructor(isStreamed: boolean) {
    this.#isStreamed = isStreamed
  }

  take(step: CompletionStep): readonly CompletionStep[] {
    switch (step.type) {
      case 'text':
        return this.#write(step)
      case 'complete':
        this.#isStepOver = true
        return [step]
      case 'busy':
        return [...this.#endStep(step), step]
      case 'restart':
        return [this.#restart(step)]
      case 'end':
        return this.#end(step)
      case 'calls':
      case 'waiting':
        return [...this.#release(this.#held, step), step]
      case 'reasoning':
      case 'problem':
        return [step]
      default:
        step satisfies never
        return []
    }
  }

  #write(step: StepPlace & { text: string }): readonly CompletionStep[] {
    const { text, textSeq } = step
    const before = this.#isStepOver ? this.#endStep(step) : []
    const isFirst = this.#held === '' && this.#sent === ''
    const piece = isFirst ? text.trimStart() : text
    if (isFirst) this.#beginsJson = BEGINS_JSON.test(piece)
    this.#held += piece
    const isOpen = this.#isStreamed && !this.#isVoid && (this.#sent !== '' || this.#beginsJson)
    if (!isOpen) return before
    // Blanks before the JSON are left out: the text begins with its first character.
    const place = textSeq === undefined ? step : { at: firstSeqOfText(this.#held, textSeq), textSeq }
    return [...before, ...this.#release(this.#held, place)]
  }

  #endStep({ at }: StepPlace): readonly CompletionStep[] {
    const held = this.#held
    this.#isVoid ||= this.#sent !== ''
    this.#held = ''
    this.#isStepOver = false
    return held === '' ? [] : [{ type: 'reasoning', text: held, at }]
  }

  #restart(step: Extract<CompletionStep, { type: 'restart' }>): CompletionStep {
    // A run that is resumed restarts also a step that has said nothing.
    if (step.text === 0) return step
    this.#held = ''
    return { ...step, text: this.#isVoid ? 0 : this.#sent.length }
  }

  #end(step: Extract<CompletionStep, { type: 'end' }>): readonly CompletionStep[] {
    const { output } = step
    const isOutput = (text: string) => isDeepStrictEqual(parseJson(text), output)
    if (output === undefined) return [...this.#release(this.#held, step), step]
    if (this.#sent === '')
      return [...this.#release(isOutput(this.#held) ? this.#held : JSON.stringify(output), step), step]
    return isOutput(this.#sent) ? [step] : [{ type: 'problem', problem: corrected(), at: step.at }]
  }

  #release(text: string, { at, textSeq }: StepPlace): readonly CompletionStep[] {
    this.#held = ''
    this.#sent += text
    return text === '' ? [] : [{ type: 'text', text, at, ...defined({ textSeq }) }]
  }
}

const BEGINS_JSON = /^[{["\d]/

function corrected(): Problem {
  const message =
    'The answer was corrected after a part of it was sent, and a stream cannot take it back. Send the request without `stream`.'
  return runProblem(new AgentError('output-invalid', message))
}
