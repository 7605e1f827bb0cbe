import { AgentError } from '../../errors.js'
import { BaseLlm, type BaseLlmConnection, type LlmResponse } from '../sdk.js'

/** Stands in for the model of a nested agent when the run has no turns left: it only says so. */
export class SpentModel extends BaseLlm {
  constructor() {
    super({ model: 'lango/spent' })
  }

  override async *generateContentAsync(): AsyncGenerator<LlmResponse, void> {
    const text = '[The turn limit of this run is reached. Nothing more was done here.]'
    yield { content: { role: 'model', parts: [{ text }] }, partial: false, turnComplete: true }
  }

  override connect(): Promise<BaseLlmConnection> {
    return Promise.reject(new AgentError('invalid-argument', 'Live connections are not supported.'))
  }
}
