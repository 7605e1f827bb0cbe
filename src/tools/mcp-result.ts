/** What a server's tool answered, as far as it is looked at here. */
export interface McpAnswer {
  content?: unknown
  structuredContent?: unknown
  isError?: unknown
  [other: string]: unknown
}

/** The answer of a server's tool as a result for the model: data if it is data, otherwise its text. */
export function mcpResult(answer: McpAnswer): unknown {
  const parts = Array.isArray(answer.content) ? answer.content.map(partText) : []
  const text = parts.join('\n')
  if (answer.isError === true) return { error: text || 'The tool failed and did not say why.' }
  const { structuredContent } = answer
  return typeof structuredContent === 'object' && structuredContent !== null ? structuredContent : text
}

/** Servers are other people's programs: what does not look as agreed is described, not trusted. */
function partText(part: unknown): string {
  if (typeof part !== 'object' || part === null) return String(part)
  const { type, text, data, mimeType, uri, resource } = part as Record<string, unknown>
  if (type === 'text') return String(text)
  if (type === 'image' || type === 'audio') {
    return `[${type} ${String(mimeType)}, ${base64Bytes(data)} bytes, not shown]`
  }
  if (type === 'resource_link') return `[resource ${String(uri)}]`
  if (type === 'resource') return resourceText(resource)
  return `[${String(type)}, not shown]`
}

function resourceText(resource: unknown): string {
  if (typeof resource !== 'object' || resource === null) return '[resource, not shown]'
  const { uri, text, blob } = resource as Record<string, unknown>
  if (typeof text === 'string') return text
  return `[resource ${String(uri)}, ${base64Bytes(blob)} bytes, not shown]`
}

function base64Bytes(data: unknown): number {
  return typeof data === 'string' ? Buffer.byteLength(data, 'base64') : 0
}
