import type { GenerateContentConfig } from '@google/genai'

/** An example of every option of `generateContentConfig`; some need another one beside them. */
export const OPTION_EXAMPLES: readonly (readonly [keyof GenerateContentConfig, object])[] = [
  ['temperature', { temperature: 0 }],
  ['topP', { topP: 0.5 }],
  ['topK', { topK: 7 }],
  ['seed', { seed: 42 }],
  ['maxOutputTokens', { maxOutputTokens: 100 }],
  ['stopSequences', { stopSequences: ['END'] }],
  ['presencePenalty', { presencePenalty: 0.5 }],
  ['frequencyPenalty', { frequencyPenalty: -0.5 }],
  ['candidateCount', { candidateCount: 2 }],
  ['responseLogprobs', { responseLogprobs: true }],
  ['logprobs', { responseLogprobs: true, logprobs: 3 }],
  ['responseMimeType', { responseMimeType: 'application/json' }],
  ['responseMimeType', { responseMimeType: 'text/x.enum' }],
  ['responseJsonSchema', { responseMimeType: 'application/json', responseJsonSchema: { type: 'object' } }],
  ['responseModalities', { responseModalities: ['TEXT', 'IMAGE'] }],
  ['mediaResolution', { mediaResolution: 'MEDIA_RESOLUTION_LOW' }],
  ['safetySettings', { safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] }],
  ['thinkingConfig', { thinkingConfig: { thinkingBudget: -1 } }],
  ['thinkingConfig', { thinkingConfig: { thinkingBudget: 0 } }],
  ['thinkingConfig', { thinkingConfig: { thinkingLevel: 'HIGH', includeThoughts: true } }],
  ['speechConfig', { speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } } }],
  ['imageConfig', { imageConfig: { aspectRatio: '16:9' } }],
  ['cachedContent', { cachedContent: 'cachedContents/abc' }],
  ['serviceTier', { serviceTier: 'flex' }],
  ['store', { store: true }],
  ['continuationToken', { continuationToken: 'more' }],
  ['enableEnhancedCivicAnswers', { enableEnhancedCivicAnswers: true }],
  ['audioTranscriptionConfig', { audioTranscriptionConfig: {} }],
  ['httpOptions', { httpOptions: { headers: { 'x-own': 'yes' } } }],
  ['automaticFunctionCalling', { automaticFunctionCalling: { disable: true } }],
  ['automaticContinuation', { automaticContinuation: false }],
  ['labels', { labels: { team: 'a' } }],
  ['toolConfig', { toolConfig: { retrievalConfig: { latLng: { latitude: 1, longitude: 2 } } } }],
]

/** Options that only Vertex AI takes. */
export const VERTEX_EXAMPLES: typeof OPTION_EXAMPLES = [
  ['audioTimestamp', { audioTimestamp: true }],
  ['generationOutputConfig', { generationOutputConfig: {} }],
  ['modelArmorConfig', { modelArmorConfig: { promptTemplateName: 't' } }],
  ['modelSelectionConfig', { modelSelectionConfig: { featureSelectionPreference: 'PRIORITIZE_COST' } }],
  ['routingConfig', { routingConfig: { autoMode: {} } }],
]

/** Keys that are no options: the instruction, the tools and the signal travel on their own, and ADK takes the schema itself. */
export const NO_OPTIONS: readonly (keyof GenerateContentConfig)[] = [
  'abortSignal',
  'responseSchema',
  'systemInstruction',
  'tools',
]
