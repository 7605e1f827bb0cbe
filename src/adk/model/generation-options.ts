import type { GenerationOptions } from '../../provider/provider.js'
import type { GenerateContentConfig } from '../sdk.js'
import { convertToolChoice, toJsonSchema } from './convert-tools.js'

/** What ADK's configuration says that any model may be told. */
export function generationOptions(config: GenerateContentConfig | undefined): GenerationOptions {
  if (!config) return {}
  const { temperature, topP, topK, seed, maxOutputTokens, stopSequences } = config
  const schema = config.responseJsonSchema ?? toJsonSchema(config.responseSchema)
  const thinking = thinkingOptions(config)
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(seed === undefined ? {} : { seed }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(stopSequences?.length ? { stopSequences } : {}),
    ...(typeof schema === 'object' && schema !== null
      ? { responseSchema: schema as Record<string, unknown> }
      : {}),
    ...convertToolChoice(config),
    ...(thinking ? { thinking } : {}),
  }
}

function thinkingOptions(config: GenerateContentConfig): GenerationOptions['thinking'] {
  const { thinkingBudget, thinkingLevel, includeThoughts } = config.thinkingConfig ?? {}
  const effort = EFFORTS.find(name => name === String(thinkingLevel).toLowerCase())
  const thinking = {
    // A negative budget leaves the choice to the model, which is what saying nothing does.
    ...(thinkingBudget === undefined || thinkingBudget < 0 ? {} : { budgetTokens: thinkingBudget }),
    ...(effort === undefined ? {} : { effort }),
    ...(includeThoughts === undefined ? {} : { includeThoughts }),
  }
  return Object.keys(thinking).length > 0 ? thinking : undefined
}

const EFFORTS = ['minimal', 'low', 'medium', 'high'] as const
