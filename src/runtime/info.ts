/** The description of a runtime, for the server, the command line and user interfaces. */

import { isRecord } from '../base/is-record.js'
import { DEFAULT_AGENT_NAME } from '../base/names.js'
import type { ModelCapabilities, RepairMode } from '../provider/provider.js'
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
  /** The root agent and those below it, when they were asked for. */
  agents?: AgentTree
}

/** What building the agents has found. */
interface FoundAgent {
  agentName: string
  model: string
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
  /** Absent when they are not known. */
  capabilities?: ModelCapabilities
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
export function describeRuntime(options: CheckedOptions, found?: FoundAgent): RuntimeInfo {
  const { history } = options
  const configured = typeof options.agent?.model === 'string' ? options.agent.model : ''
  const model = options.model ?? found?.model ?? configured
  const byDefault = history?.observationalMemory ? OBSERVATIONAL_BUDGET_TOKENS : DEFAULT_BUDGET_TOKENS
  return {
    app: options.app,
    agent: found?.agentName ?? options.agent?.name ?? DEFAULT_AGENT_NAME,
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

/** An agent with those below it, as far as pages show it. */
export interface AgentTree {
  name: string
  description?: string
  /** The name of its model, when it has one of its own. */
  model?: string
  tools: string[]
  subAgents: AgentTree[]
}

/** The fields of agents and of nodes of workflows that are read here, of whatever type they are. */
interface AgentFields {
  name?: unknown
  description?: unknown
  model?: unknown
  tools?: unknown
  subAgents?: unknown
  graph?: unknown
}

/** Reads an agent or a node of a workflow by its fields, so that ADK need not be loaded. */
export function describeAgent(agent: AgentFields, depth = 0): AgentTree {
  const { name, description, model, tools, subAgents, graph } = agent
  const below: AgentFields[] = listOf(isRecord(graph) ? graph.nodes : subAgents)
  return {
    name: String(name ?? ''),
    ...(typeof description === 'string' && description !== '' ? { description } : {}),
    ...(typeof model === 'string' && model !== '' ? { model } : {}),
    tools: listOf(tools).flatMap((tool: AgentFields) => (typeof tool.name === 'string' ? [tool.name] : [])),
    subAgents: depth < DEEPEST ? below.map(child => describeAgent(child, depth + 1)) : [],
  }
}

const DEEPEST = 20

function listOf(value: unknown): object[] {
  return Array.isArray(value) ? value.filter(entry => typeof entry === 'object' && entry !== null) : []
}
