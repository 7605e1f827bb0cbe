/** The options of `createRuntime`: the configuration's schema, with what only a program can give. */
import { z } from 'zod'
import { logger, made } from './code-parts.js'
import { agentSchemaWith, refuseTwoAgents, sharedKeys } from './config.js'
import { group, live, storeAddress, text } from './schema-parts.js'

const MODEL_ERROR = 'must be a model such as "openai/gpt-5.2", or a model of ADK'
const STORE_ERROR =
  'must be an address that begins with sqlite:, postgres:// or memory:, or a store made in code'

const agentModel = z.union([text(), live<object>('generateContentAsync', MODEL_ERROR)], {
  error: MODEL_ERROR,
})

const store = z.union(
  [
    storeAddress(),
    made<object>(['createSession', 'loadSession', 'appendMessage', 'acquireLease', 'close'], STORE_ERROR),
  ],
  { error: STORE_ERROR },
)

export const optionsSchema = group({
  ...sharedKeys,
  store: store.optional(),
  agent: agentSchemaWith(agentModel).optional(),
  model: text('must be a model such as "openai/gpt-5.2"').optional(),
  logger: logger.optional(),
}).superRefine(refuseTwoAgents)

/** Options as the schema sees them; `RuntimeOptions` says more of what is made in code. */
export type OptionsInput = z.input<typeof optionsSchema>
