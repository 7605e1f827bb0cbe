/** The schema of a provider's options. */

import { z } from 'zod'
import { PROVIDER_TYPES } from '../provider/vendors.js'
import {
  anyFunction,
  capabilitiesSchema,
  environment,
  flag,
  group,
  oneOf,
  priceSchema,
  profileSchema,
  text,
  textsByName,
  webAddress,
  wholeNumber,
} from './schema-parts.js'

const modelCorrectionSchema = group({
  contextWindow: wholeNumber(1).optional().describe('The context window in tokens.'),
  outputLimit: wholeNumber(1).optional().describe('Maximum number of output tokens.'),
  price: priceSchema().optional().describe('The price of the model.'),
  capabilities: capabilitiesSchema().optional().describe('What the model can do.'),
  profile: text().optional().describe('The name of a repair profile.'),
})

/** The options of one provider. */
export const providerSchema = group({
  type: oneOf(PROVIDER_TYPES)
    .optional()
    .describe('The API of the provider. Optional when the provider’s name is a type.'),
  apiKey: text('must be a non-empty key').optional().describe('Default: the vendor’s environment variable.'),
  account: text()
    .optional()
    .describe(
      'A name for the account. What a model has signed is sent back to the same account only, which with a name stays the same when the key changes. Default: accounts differ when their keys differ, or on a platform their resource, region or project.',
    ),
  baseUrl: webAddress().optional().describe('The base URL, in the form that the vendor’s SDK expects.'),
  api: oneOf(['chat', 'responses'])
    .optional()
    .describe(
      'For `openai` and `azure`. Default: Responses for OpenAI’s own models, Chat Completions for others.',
    ),
  profile: profileSchema.optional().describe('The repair profile. Default: chosen by the model’s name.'),
  preset: text()
    .optional()
    .describe('For `openai-compatible`: the name of a known server, such as `ollama` or `groq`.'),
  headers: textsByName.optional().describe('Sent with every request. Never printed.'),
  models: z
    .record(z.string(), modelCorrectionSchema, { error: 'must be an object of models' })
    .optional()
    .describe('Corrections to the model catalogue, by model name.'),
  retry: group({
    maxAttempts: wholeNumber(1, 20).optional().describe('Maximum number of attempts for one model call.'),
    baseDelayMs: wholeNumber(0)
      .optional()
      .describe('The first delay between attempts; it grows exponentially.'),
    maxDelayMs: wholeNumber(0)
      .optional()
      .describe('The longest delay. If a server asks for a longer one, the call fails.'),
    sleep: anyFunction<(delayMs: number, signal?: AbortSignal) => Promise<void>>()
      .optional()
      .describe('Waits between attempts. For tests.'),
    random: anyFunction<() => number>()
      .optional()
      .describe('A number from 0 to 1 for the jitter. For tests.'),
  })
    .optional()
    .describe('Retries of model calls that fail before any output was streamed.'),
  idleTimeoutMs: wholeNumber(1)
    .optional()
    .describe('How long to wait while the provider sends no data. Default 600000.'),
  vertexai: flag.optional().describe('For `gemini`: use Vertex AI. Default: GOOGLE_GENAI_USE_VERTEXAI.'),
  project: text().optional().describe('For Vertex AI. Default: GOOGLE_CLOUD_PROJECT.'),
  location: text()
    .optional()
    .describe('For Vertex AI. Default: GOOGLE_CLOUD_LOCATION; for `vertex` otherwise `global`.'),
  region: text().optional().describe('For `bedrock`. Default: AWS_REGION.'),
  apiVersion: text()
    .optional()
    .describe('For `azure`: a dated version of the API. Default: OPENAI_API_VERSION, or the v1 API.'),
  deployments: textsByName
    .optional()
    .describe('For `azure`: the models of deployments that are not named like their models.'),
  env: environment
    .optional()
    .describe('The environment variables of the vendor. Default: those of the process. Never printed.'),
})
