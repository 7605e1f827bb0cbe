/** The forms that a session can be written in, besides Lango's own lines, by the names that people know them by. */
export const EXPORT_FORMS = {
  adk: 'Session of ADK for TypeScript',
  'adk-python': 'Session of ADK for Python',
  'ai-sdk-ui': 'UI messages of the AI SDK',
  'ai-sdk-model': 'Model messages of the AI SDK',
  mastra: 'Messages of Mastra',
  langchain: 'Messages of LangChain',
  'openai-agents': 'Items of the OpenAI Agents SDK',
  'openai-chat': 'Request of OpenAI Chat Completions',
  'openai-responses': 'Request of OpenAI Responses',
  anthropic: 'Request of Anthropic Messages',
  gemini: 'Request of Gemini',
} as const

export type ExportFormat = keyof typeof EXPORT_FORMS

export const EXPORT_FORMATS = Object.keys(EXPORT_FORMS) as readonly ExportFormat[]
