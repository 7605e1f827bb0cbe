// The agent of guarantees.test.ts and of its child. One session for each guarantee, named after it; the first word of a
// message is the name of its session. In the child, models and tools hang where the process is to be killed.
import { appendFileSync } from 'node:fs'
import { silentLogger } from '../../src/logger.js'
import type { GenerateRequest } from '../../src/provider/provider.js'
import { createRuntime, type Runtime } from '../../src/runtime/runtime.js'
import type { SessionStore } from '../../src/session/session-store.js'
import { ScriptedProvider, type ScriptStep } from '../../src/testing/scripted-provider.js'
import type { Tool } from '../../src/tool.js'

export interface GuaranteeAgentOptions {
  store: SessionStore
  /** A file outside the processes: what models were asked, and what tools did. */
  log: string
  /** Models and tools do not end. */
  hangs: boolean
}

/** The id of the run of a session's first message. */
export function firstRunOf(session: string): string {
  return `00000000-0000-4000-8000-${Buffer.from(session.slice(0, 6).padEnd(6, '0')).toString('hex')}`
}

const never = () => new Promise<never>(() => {})

export function createGuaranteeRuntime({ store, log, hangs }: GuaranteeAgentOptions): Promise<Runtime> {
  const note = (line: string) => appendFileSync(log, `${line}\n`)
  const script = (request: GenerateRequest): ScriptStep | Promise<ScriptStep> => {
    const { text, results } = turnOf(request)
    note(`asked ${text} ${results}`)
    const calls = CALLS[text.split(' ')[0] ?? ''] ?? []
    const next = calls[results]
    if (next !== undefined && (results === 0 || !hangs)) return { toolCalls: [{ name: next, args: {} }] }
    return hangs ? never() : { text: 'Done.' }
  }
  const tool = (name: string, more: Partial<Tool>): Tool => ({
    name,
    description: name,
    parameters: { type: 'object' },
    execute: (_args, { idempotencyKey }) => {
      note(`${name} ${idempotencyKey}`)
      return hangs ? never() : { done: name }
    },
    ...more,
  })
  return createRuntime({
    store,
    logger: silentLogger,
    providers: { play: new ScriptedProvider(script, { id: 'play' }) },
    agent: {
      name: 'root',
      model: 'play/m',
      tools: [
        tool('look', {
          effect: 'read',
          execute: () => {
            note('look')
            return { found: 'a key' }
          },
        }),
        tool('send', { effect: 'idempotent', needsApproval: true }),
        tool('pay_keyed', { onUnknown: 'retry' }),
        tool('pay_blind', {}),
      ],
    },
  })
}

/** The calls of the model, one after the other. It repeats a payment whose outcome it does not know. */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  survives: ['look'],
  waits: ['send'],
  keyed: ['pay_keyed'],
  blind: ['pay_blind', 'pay_blind'],
}

/** The message that is answered, and how many results of tools follow it. */
function turnOf({ messages }: GenerateRequest): { text: string; results: number } {
  const at = messages.findLastIndex(({ role, parts }) => role === 'user' && parts.some(isText))
  const text = messages[at]?.parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('') ?? ''
  const later = messages.slice(at + 1).flatMap(({ parts }) => parts)
  return { text, results: later.filter(({ type }) => type === 'tool-result').length }
}

function isText({ type }: { type: string }): boolean {
  return type === 'text'
}
