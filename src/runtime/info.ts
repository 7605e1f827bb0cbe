/** The description of a runtime, for the server, the command line and user interfaces. */

import { DEFAULT_AGENT_NAME } from '../base/names.js'
import type { RepairMode } from '../provider/provider.js'
import { DEFAULT_BUDGET_TOKENS, OBSERVATIONAL_BUDGET_TOKENS } from '../session/budget.js'
import type { SessionKey } from '../session/message.js'
import type { ModelPrice } from '../session/usage.js'
import type { CheckedOptions } from './options.js'

export interface RuntimeInfo {
  app: string
  /** The root agent's name. */
  agent: string
  /** What runs use unless they name another; empty when an agent from code brings a model of its own. */
  model: string
  /** The offline demo model answers. */
  demo: boolean
  /** The kind of store; never its address. */
  store: 'sqlite' | 'postgres' | 'memory' | 'custom'
  budgetTokens: number | 'off'
  repair: RepairMode
  /** Whether memory is on. */
  memory: boolean
}

/** A model that can be named in `model`. */
export interface ModelChoice {
  /** `provider/model`. */
  reference: string
  provider: string
  id: string
  contextWindow: number
  outputLimit: number
  price?: ModelPrice
  /** The rules that a history is repaired to. */
  profile: string
  /** Whether a key was found, or none is needed. */
  keyPresent: boolean
  /** The variable that would hold the key. */
  keyVariable?: string
  /** The catalogue knows the model; otherwise its figures are careful guesses. */
  known: boolean
}

/** What every provider would say of a stored session. */
export interface SessionLint {
  key: SessionKey
  /** How many messages the session has. */
  messages: number
  /** How many older messages were not looked at, when the session is longer than the bound. */
  truncated?: { skipped: number }
  profiles: ProfileLint[]
}

export interface ProfileLint {
  profile: string
  /** Sent as it is stored, the history would be refused. Lango repairs it, so the session can continue. */
  refused: boolean
  /** How many findings there are of each kind, listed or not. */
  breaks: number
  mapped: number
  /** At most 200, those that break first in line. */
  findings: SessionFinding[]
}

export interface SessionFinding {
  code: string
  severity: 'breaks' | 'mapped'
  /** Position in the neutral history. */
  at: number
  /** The stored message that it is about, if known. */
  seq?: number
  message: string
  repair: string
}

/** What the options say; `agent` and `model` as found when an agent was made in code. */
export function describeRuntime(options: CheckedOptions, agent?: string, found?: string): RuntimeInfo {
  const { history } = options
  const configured = typeof options.agent?.model === 'string' ? options.agent.model : ''
  const model = options.model ?? found ?? configured
  const byDefault = history?.observationalMemory ? OBSERVATIONAL_BUDGET_TOKENS : DEFAULT_BUDGET_TOKENS
  return {
    app: options.app,
    agent: agent ?? options.agent?.name ?? DEFAULT_AGENT_NAME,
    model,
    demo: model === 'demo' || model.startsWith('demo/'),
    store: storeKind(options.store ?? 'sqlite:'),
    budgetTokens: history?.maxMessageTokenBudget || byDefault,
    repair: history?.repair ?? 'repair',
    memory: history?.memory !== undefined || history?.observationalMemory === true,
  }
}

function storeKind(store: NonNullable<CheckedOptions['store']>): RuntimeInfo['store'] {
  if (typeof store !== 'string') return 'custom'
  if (/^postgres/i.test(store)) return 'postgres'
  return /^memory:/i.test(store) ? 'memory' : 'sqlite'
}
