/** What may come last. Newer models answer a user or a tool and refuse to continue an assistant message. */
import { CONTINUE_TEXT } from './prepend-user.js'
import { type Entry, madeEntry, replaceParts, type StepContext } from './receipt.js'

const STEP = 'close-tail'

/** Adds a user turn after a final assistant message, or trims that message, as the profile demands. */
export function closeTail(entries: readonly Entry[], context: StepContext): readonly Entry[] {
  const { profile, next } = context
  const last = entries.at(-1)
  if (!last || next === 'user' || profile.last === 'any') return entries
  if (profile.last === 'trimmed') return trimTail(entries, last, context)
  if (last.message.role === 'user' || last.message.role === 'tool') return entries
  if (last.message.role === 'system' && profile.system === 'after-user' && entries.length > 1) return entries
  const detail = `The user turn "${CONTINUE_TEXT}" was added at the end.`
  context.report({ step: STEP, kind: 'append', at: last.at, detail })
  return [...entries, madeEntry('user', [{ type: 'text', text: CONTINUE_TEXT }], last.at)]
}

function trimTail(entries: readonly Entry[], last: Entry, { report }: StepContext): readonly Entry[] {
  if (last.message.role !== 'assistant') return entries
  const end = last.message.parts.length - 1
  const trimmed = replaceParts(last, (part, index) => {
    if (index !== end || part.type !== 'text') return part
    const text = part.text.trimEnd()
    return text === part.text ? part : { ...part, text }
  })
  if (trimmed === last) return entries
  report({
    step: STEP,
    kind: 'trim',
    at: last.at,
    detail: 'White space at the end of the last text was trimmed.',
  })
  return [...entries.slice(0, -1), trimmed]
}
