/** The blocks of Anthropic's server tools: which sources they name, and what other vendors and people read of them. */
import { isRecord } from '../../base/is-record.js'
import type { AnswerSources } from '../answer-sources.js'

interface ServerToolBlock {
  type: string
  name?: string | undefined
  input?: unknown
  content?: unknown
}

/** Takes the sources of a search or a fetched page. */
export function readServerTool(
  { type, name, input, content }: ServerToolBlock,
  sources: AnswerSources,
): void {
  if (name === 'web_search' && isRecord(input)) sources.searched(input.query)
  if (type === 'web_search_tool_result') for (const page of resultsIn(content)) sources.find(page)
  if (type === 'web_fetch_tool_result' && isRecord(content)) {
    const isDone = content.type === 'web_fetch_result'
    if (typeof content.url === 'string') sources.fetched(content.url, isDone)
  }
}

/** A block in words. */
export function serverToolText(block: ServerToolBlock): string {
  const { type, name = type, input, content } = block
  if (type === 'server_tool_use') return callText(name, isRecord(input) ? input : {})
  const pages = resultsIn(content)
  if (pages.length > 0) return `Found: ${pages.map(({ title, url }) => `${title} (${url})`).join(', ')}`
  if (!isRecord(content)) return `[the model used ${name}]`
  if (typeof content.error_code === 'string') return `The server tool failed: ${content.error_code}`
  if (typeof content.stdout === 'string') return `The code answered: ${content.stdout}${errorsOf(content)}`
  return typeof content.url === 'string' ? `Read: ${content.url}` : `[the model used ${name}]`
}

function callText(name: string, input: Record<string, unknown>): string {
  const code = input.code ?? input.command
  if (typeof code === 'string') return `The model ran this code:\n\`\`\`\n${code}\n\`\`\``
  if (typeof input.query === 'string') return `The model searched the web for: ${input.query}`
  return typeof input.url === 'string' ? `The model opened ${input.url}` : `[the model used ${name}]`
}

function errorsOf({ stderr }: Record<string, unknown>): string {
  return typeof stderr === 'string' && stderr !== '' ? `\n${stderr}` : ''
}

function resultsIn(content: unknown): { url: string; title: string }[] {
  if (!Array.isArray(content)) return []
  return content.flatMap((result: unknown) => {
    if (!isRecord(result) || typeof result.url !== 'string') return []
    return [{ url: result.url, title: typeof result.title === 'string' ? result.title : result.url }]
  })
}
