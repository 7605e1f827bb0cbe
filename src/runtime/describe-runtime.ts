import { DEFAULT_BUDGET_TOKENS, OBSERVATIONAL_BUDGET_TOKENS } from '../session/token-budget-truncate.js'
import type { RuntimeInfo } from './info.js'
import type { RuntimeOptions } from './options.js'

/** What the options say; `agent` and `model` as found when an agent was made in code. */
export function describeRuntime(options: RuntimeOptions, agent?: string, found?: string): RuntimeInfo {
  const { history } = options
  const configured = typeof options.agent?.model === 'string' ? options.agent.model : ''
  const model = options.model ?? found ?? configured
  const byDefault = history?.observationalMemory ? OBSERVATIONAL_BUDGET_TOKENS : DEFAULT_BUDGET_TOKENS
  return {
    app: options.app ?? 'lango',
    agent: agent ?? options.agent?.name ?? 'lango-agent',
    model,
    demo: model === 'demo' || model.startsWith('demo/'),
    store: storeKind(options.store ?? 'sqlite:'),
    budgetTokens: history?.maxMessageTokenBudget || byDefault,
    repair: history?.repair ?? 'repair',
  }
}

function storeKind(store: NonNullable<RuntimeOptions['store']>): RuntimeInfo['store'] {
  if (typeof store !== 'string') return 'custom'
  if (/^postgres/i.test(store)) return 'postgres'
  return /^memory:/i.test(store) ? 'memory' : 'sqlite'
}
