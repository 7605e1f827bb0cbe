/** A bank, and the tools that pay there: one for each way in which a tool may be declared. */
import { FunctionTool, LongRunningFunctionTool } from '@google/adk'
import { z } from 'zod'
import type { PaymentRequest } from '../chaos/bank.js'
import type { AgentTool } from '../src/adk/agent/build-agent.js'
import {
  defineTool,
  type OnUnknown,
  type StandardSchema,
  type Tool,
  type VerifyContext,
} from '../src/tool.js'
import type { SimulatedProcess } from './process.js'

export type ToolName =
  | 'balance'
  | 'pay_keyed'
  | 'pay_retried'
  | 'pay_blind'
  | 'pay_asked'
  | 'pay_failing'
  | 'pay_verified'
  | 'pay_approved'
  | 'pay_confirmed'
  | 'pay_later'

/** Tools of ADK that a person answers between two rounds of a run: a confirmation, the result of a long-running tool. */
export const ANSWERED_LATER: readonly ToolName[] = ['pay_confirmed', 'pay_later']

/** Records each effect. A payment with a key that is known has none. */
export class Bank {
  readonly effects: (PaymentRequest & { receipt: string })[] = []
  /** How often a known key came again. */
  repeats = 0

  pay(order: string, key: string, slot: number, atMs: number, isKeyed: boolean): string {
    const known = isKeyed ? this.receiptOf(key) : undefined
    if (known !== undefined) {
      this.repeats += 1
      return known
    }
    const receipt = `receipt-${this.effects.length + 1}`
    const counter = isKeyed ? 'keyed' : 'blind'
    this.effects.push({ counter, order, key, slot, atMs, effect: 'made', receipt })
    return receipt
  }

  receiptOf(key: string): string | undefined {
    return this.effects.find(effect => effect.key === key)?.receipt
  }

  /** The payments that were made, by order. */
  byOrder(): Map<string, Bank['effects']> {
    const made = new Map<string, Bank['effects']>()
    for (const effect of this.effects) made.set(effect.order, [...(made.get(effect.order) ?? []), effect])
    return made
  }
}

export interface BankTools {
  bank: Bank
  process: SimulatedProcess
  now(): number
  /** Repeats payments without a key whose outcome is unknown: a mistake that the checks must find. */
  repeatsBlindly: boolean
}

interface PayOptions {
  effect?: 'idempotent' | 'once'
  onUnknown?: OnUnknown
  isKeyed?: boolean
  needsApproval?: true
  isVerified?: true
}

export function bankTools(parts: BankTools): AgentTool[] {
  const blind: PayOptions = parts.repeatsBlindly ? { onUnknown: 'retry' } : {}
  return [
    balanceTool(parts),
    payTool('pay_keyed', parts, { effect: 'idempotent', isKeyed: true }),
    payTool('pay_retried', parts, { onUnknown: 'retry', isKeyed: true }),
    payTool('pay_blind', parts, blind),
    payTool('pay_asked', parts, { onUnknown: 'ask' }),
    payTool('pay_failing', parts, { onUnknown: 'fail' }),
    payTool('pay_verified', parts, { isVerified: true }),
    payTool('pay_approved', parts, { needsApproval: true }),
    ...adkTools(parts),
  ]
}

const ORDER = z.object({ order: z.string() })

/** What is asked for before the payment, and what is paid now and answered by a person later. */
function adkTools({ bank, process, now }: BankTools): AgentTool[] {
  const pay = async (name: ToolName, order: string): Promise<string> => {
    await process.reach(`tool:${name}:before`)
    const receipt = bank.pay(order, name, process.slot, now(), false)
    process.note(`paid ${order} by ${name}`)
    await process.reach(`tool:${name}:after`)
    return receipt
  }
  const description = 'Pays an order at the bank.'
  return [
    new FunctionTool({
      name: 'pay_confirmed',
      description,
      parameters: ORDER,
      requireConfirmation: true,
      execute: async ({ order }) => paid(order, await pay('pay_confirmed', order)),
    }),
    new LongRunningFunctionTool({
      name: 'pay_later',
      description,
      parameters: ORDER,
      execute: async ({ order }) => {
        await pay('pay_later', order)
        return null
      },
    }),
  ]
}

/** What a payment that was made is reported as. */
export function paid(order: string, receipt: string) {
  return { status: 'paid', order, receipt }
}

const JSON_SCHEMA = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] }

/** Accepts everything and describes itself: building a validator from JSON would take half the time of a start. */
const PARAMETERS: StandardSchema<{ order: string }> = {
  '~standard': {
    version: 1,
    vendor: 'simulate',
    validate: (value: unknown) => ({ value: value as { order: string } }),
    ...{ jsonSchema: { input: () => JSON_SCHEMA } },
  },
}

function balanceTool({ process }: BankTools): Tool {
  return defineTool({
    name: 'balance',
    description: 'Reads the balance.',
    parameters: PARAMETERS,
    effect: 'read',
    execute: async ({ order }) => {
      await process.reach('tool:balance:before')
      return { balance: 1000, order }
    },
  })
}

function payTool(name: ToolName, parts: BankTools, options: PayOptions): Tool {
  const { effect = 'once', onUnknown, isKeyed = false, isVerified, needsApproval } = options
  const { bank, process } = parts
  return {
    name,
    description: 'Pays an order at the bank.',
    parameters: PARAMETERS,
    effect,
    ...(onUnknown ? { onUnknown } : {}),
    ...(needsApproval ? { needsApproval } : {}),
    ...(isVerified
      ? {
          verify: async (args: Record<string, unknown>, { idempotencyKey }: VerifyContext) => {
            await process.reach(`tool:${name}:verify`)
            const receipt = bank.receiptOf(idempotencyKey)
            return receipt === undefined ? undefined : paid(String(args.order), receipt)
          },
        }
      : {}),
    execute: async (args, { idempotencyKey }) => {
      const order = String(args.order)
      const begunAt = parts.now()
      await process.reach(`tool:${name}:before`)
      // Somebody may have looked for this payment and not found it: it must not be made afterwards.
      const isChecked = isVerified === true || onUnknown === 'ask'
      if (isChecked && parts.now() - begunAt > DEADLINE_MS)
        throw new RangeError('The bank takes no request that is so old.')
      const receipt = bank.pay(order, idempotencyKey, process.slot, parts.now(), isKeyed)
      process.note(`paid ${order} with ${idempotencyKey.slice(0, 12)}`)
      await process.reach(`tool:${name}:after`)
      return paid(order, receipt)
    },
  }
}

/** Less than the time after which another process may take over a run. */
const DEADLINE_MS = 3000
