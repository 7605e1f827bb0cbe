/**
 * What ADK does with contents and names that Lango has to work around. `test/contract` pins ADK's behaviour.
 * This file imports types only, because converters that use it must not load ADK.
 *
 * Who wrote a content that has the user's role, the user or a program in that role:
 *
 * - ADK copies the contents of its events into each request and rewrites those of other agents and of
 *   compacted history as new contents. The mark below is a property by symbol: ADK's copies keep it, its new
 *   contents do not have it, and it never appears in JSON, stored rows or wire bodies.
 * - The session service marks what it gives to ADK by role and metadata. A marked content is never judged by
 *   its text.
 * - A content without a mark (a model adapter under another session service, contents that a callback made) is
 *   the user's, unless it has the whole shape of ADK's account of another agent's event.
 */

import type { Content, LlmAgent, Part } from './sdk.js'

/** `program`: a correction by Lango, an account by ADK. */
export type WrittenBy = 'user' | 'program'

const MARK = Symbol.for('lango.written-by')

/** A copy of the content that says who wrote it. */
export function markWrittenBy(content: Content, writtenBy: WrittenBy): Content {
  return Object.assign({ ...content }, { [MARK]: writtenBy })
}

/** Who wrote a content of the user's role. */
export function writtenBy(content: Content): WrittenBy {
  const mark: unknown = Reflect.get(content, MARK)
  if (mark === 'user' || mark === 'program') return mark
  return hasShapeOfAccount(content) ? 'program' : 'user'
}

/** Whether a content is ADK's account of another agent's event. */
export function isAccountByAdk(content: Content): boolean {
  return Reflect.get(content, MARK) === undefined && hasShapeOfAccount(content)
}

/** A heading in a part of its own, and then only what ADK writes of an agent's words, calls and results. */
function hasShapeOfAccount({ parts = [] }: Content): boolean {
  const [heading, ...others] = parts
  return heading?.text === ACCOUNT_HEADING && others.length > 0 && others.every(isAccountPart)
}

const ACCOUNT_HEADING = 'For context:'

/** Thoughts, media and code are copied along as they are. */
function isAccountPart({ text, thought }: Part): boolean {
  return !text || thought === true || ACCOUNT_TEXT.test(text)
}

const ACCOUNT_TEXT = /^\[[^\]]+\] (?:said: |called tool `|tool `)/

/**
 * ADK looks tools and state up with `in` and with `object[name]`, which also find what every object inherits:
 * `constructor`, `toString`, `__proto__` and their kin. Objects that ADK looks foreign names up in lose their
 * prototype here, in place, because ADK holds on to the object that it made.
 */
export function withoutInheritedNames<Fields extends object>(fields: Fields): Fields {
  if (Object.getPrototypeOf(fields) !== null) Object.setPrototypeOf(fields, null)
  return fields
}

/**
 * ADK calls the model again after a tool that has escalated, unless the tool also skips the summary: the loop ends
 * whatever the model says, and most models say nothing. ADK passes no such fact to the model, so requests are marked.
 */
const maySayNothing = new WeakSet<object>()

/** An empty answer to this request is accepted, and not requested again. */
export function acceptSilence(llmRequest: object): void {
  maySayNothing.add(llmRequest)
}

export function acceptsSilence(llmRequest: object): boolean {
  return maySayNothing.has(llmRequest)
}

type RequestProcessor = LlmAgent['requestProcessors'][number]

/** ADK refuses a tool called `constructor` as a duplicate: it finds the name in its own, still empty table. */
export function takeAnyToolName(agent: LlmAgent): LlmAgent {
  const { requestProcessors } = agent
  if (!requestProcessors.includes(PLAIN_TOOL_TABLE)) requestProcessors.unshift(PLAIN_TOOL_TABLE)
  return agent
}

const PLAIN_TOOL_TABLE: RequestProcessor = {
  // biome-ignore lint/correctness/useYield: ADK's processors may emit events; this one has none.
  async *runAsync(_invocation, llmRequest) {
    withoutInheritedNames(llmRequest.toolsDict)
  },
}

/**
 * ADK reports what went wrong inside a run as words. This file is the only one that reads them; a contract
 * test holds each text, so that an upgrade of ADK which changes one fails there and not in production.
 */

type AdkFailure =
  | { kind: 'unknown-agent'; name: string }
  | { kind: 'unknown-tool'; name: string }
  | { kind: 'model-call-limit' }
  | { kind: 'other' }

const PATTERNS: readonly { kind: AdkFailure['kind']; pattern: RegExp }[] = [
  { kind: 'unknown-agent', pattern: /^Agent (.+) not found in the agent tree\.$/ },
  { kind: 'unknown-agent', pattern: /failed to find agent: (.+?)\.?$/ },
  { kind: 'unknown-tool', pattern: /^Function (.+) is not found in the toolsDict\.$/ },
  { kind: 'model-call-limit', pattern: /^Max number of llm calls limit of/ },
]

/**
 * What an error message of ADK means. `whole`: the words must be all of it, because somebody else than ADK may
 * have quoted them in a longer sentence.
 */
export function adkFailure(message: string, { whole = false } = {}): AdkFailure {
  for (const { kind, pattern } of PATTERNS) {
    const found = pattern.exec(message)
    if (!found || (whole && found.index > 0)) continue
    if (kind === 'unknown-agent' || kind === 'unknown-tool') return { kind, name: found[1] ?? '' }
    return { kind: 'model-call-limit' }
  }
  return { kind: 'other' }
}
