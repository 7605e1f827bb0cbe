import type { THINKING_LEVELS } from '../base/names.js'
import type { JsonSchema, StandardSchema } from '../tool.js'

/** How much a model thinks before it answers. */
export type ThinkingLevel = (typeof THINKING_LEVELS)[number]

/** What models are asked for, by an agent or by one run. */
export interface ModelOptions<Output = unknown> {
  /** How much the model thinks. A model that cannot do so gets the nearest that it can, with a receipt. */
  thinking?: ThinkingLevel | undefined
  temperature?: number | undefined
  /** The most tokens of one answer. */
  maxOutputTokens?: number | undefined
  /**
   * A schema of an object, by Zod or as JSON schema: the last answer is JSON that satisfies it. A model that answers
   * otherwise gets one correction.
   */
  outputSchema?: OutputSchema<Output> | undefined
  /** Models that answer in order while the model before them cannot, as `provider/model`. */
  fallback?: readonly string[] | undefined
}

/** A Standard Schema such as Zod's, or a JSON schema. */
export type OutputSchema<Output = unknown> = StandardSchema<Output> | JsonSchema

/** What of the options is sent with each request. */
export type SamplingOptions = Pick<ModelOptions, 'thinking' | 'temperature' | 'maxOutputTokens'>

/** A schema that answers are checked with. */
export interface CheckedOutput {
  readonly jsonSchema: JsonSchema
  validate(value: unknown): Promise<{ args: unknown } | { problem: string }>
}
