import { messageOf } from '../../errors.js'
import { APPROVALS_STATE_KEY, type ApprovalOutcome, type Tool, type ToolContext } from '../../tool.js'
import { startTimeLimit } from './time-limit.js'

/** A call that waits for a person. */
export interface ApprovalRequest {
  tool: Tool
  args: Record<string, unknown>
  /** `signal` is aborted when the run is stopped or the time for an answer is over. */
  context: ToolContext
}

/** Asks a person. `true` means once, `false` means no. */
export type Approve = (
  request: ApprovalRequest,
) => Promise<ApprovalOutcome | boolean> | ApprovalOutcome | boolean

export interface ApprovalSeam {
  approve?: Approve | undefined
  approvalTimeoutMs: number
}

/**
 * Whether a call may run: `undefined`, or the words that tell the model why it may not. Only a plain yes lets it
 * run: silence, an abort and a failure to ask are refusals.
 */
export async function refusalOf(request: ApprovalRequest, seam: ApprovalSeam): Promise<string | undefined> {
  const { tool, args, context } = request
  const { needsApproval } = tool
  const asks = typeof needsApproval === 'function' ? await needsApproval(args) : (needsApproval ?? false)
  if (!asks || approvedTools(context).includes(tool.name)) return undefined
  if (!seam.approve) return `Tool "${tool.name}" needs a person's approval, and nobody can be asked here.`
  const outcome = await ask(request, seam.approve, seam.approvalTimeoutMs)
  if (outcome === 'always') context.state.set(APPROVALS_STATE_KEY, [...approvedTools(context), tool.name])
  return outcome === 'once' || outcome === 'always' ? undefined : refusalText(tool.name, outcome, seam)
}

function approvedTools(context: ToolContext): string[] {
  const names = context.state.get(APPROVALS_STATE_KEY)
  return Array.isArray(names) ? names.filter(name => typeof name === 'string') : []
}

/** Asks until an answer, the end of the run, or the end of the time; the first of them counts. */
async function ask(
  request: ApprovalRequest,
  approve: Approve,
  timeoutMs: number,
): Promise<ApprovalOutcome | { failure: string }> {
  const over = new AbortController()
  const signal = AbortSignal.any([request.context.signal, over.signal])
  const ended = new Promise<ApprovalOutcome>(resolve => {
    const end = () => resolve(request.context.signal.aborted ? 'aborted' : 'timeout')
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
  const timer = startTimeLimit(() => over.abort(), timeoutMs)
  try {
    const answer = Promise.resolve(approve({ ...request, context: { ...request.context, signal } }))
    return outcomeOf(await Promise.race([ended, answer]))
  } catch (error) {
    return { failure: messageOf(error) }
  } finally {
    clearTimeout(timer)
    // Whoever still waits for a person need not wait any longer.
    over.abort()
  }
}

function outcomeOf(answer: ApprovalOutcome | boolean): ApprovalOutcome {
  if (answer === true) return 'once'
  // What comes from a caller's code or another process may be anything: all that is not a yes is a no.
  return answer === 'once' || answer === 'always' || answer === 'timeout' || answer === 'aborted'
    ? answer
    : 'no'
}

function refusalText(
  name: string,
  outcome: ApprovalOutcome | { failure: string },
  seam: ApprovalSeam,
): string {
  if (typeof outcome === 'object')
    return `Tool "${name}" was not run: asking for approval failed (${outcome.failure}).`
  if (outcome === 'aborted')
    return `Tool "${name}" was not run: the run was stopped while it waited for approval.`
  if (outcome === 'timeout') {
    const seconds = seam.approvalTimeoutMs / 1000
    return `Tool "${name}" was refused and not run: nobody answered the request for approval within ${seconds} s.`
  }
  return `The user refused tool "${name}". It was not run. Do not try again unless the user asks for it.`
}
