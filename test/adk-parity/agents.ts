// All agents of the suite, by name.
import { AGENTS } from './cases-agents.js'
import { CALLBACKS } from './cases-callbacks.js'
import { COMPOSITION } from './cases-composition.js'
import { HISTORY } from './cases-history.js'
import { SERVICES } from './cases-services.js'
import { TOOLS } from './cases-tools.js'
import type { ParityCase } from './parity.js'

export const ALL: Readonly<Record<string, ParityCase>> = {
  ...AGENTS,
  ...COMPOSITION,
  ...CALLBACKS,
  ...TOOLS,
  ...SERVICES,
  ...HISTORY,
}
