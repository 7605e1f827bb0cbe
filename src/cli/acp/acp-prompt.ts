/** The content of a prompt as the message of a run. */
import { isAbsolute, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ContentBlock } from '@agentclientprotocol/sdk'
import { isEitherBase64 } from '../../base/base64.js'
import { MIME_TYPE } from '../../base/mcp-result.js'
import { AgentError } from '../../errors.js'

type MessagePart = { text: string } | { inlineData: { mimeType: string; data: string } }
interface Prompt {
  text: string
  parts: MessagePart[]
}

/** Text first where the prompt begins with it: it becomes the title of a new session. */
export function readPrompt(blocks: readonly ContentBlock[], workspace: string): Prompt {
  const parts = blocks.map((block, index) => partOf(block, index, workspace))
  const [first, ...others] = parts
  if (first && 'text' in first) return { text: first.text, parts: others }
  if (parts.length === 0) throw invalid('The prompt is empty. Send at least one content block.')
  return { text: '', parts }
}

function partOf(block: ContentBlock, index: number, workspace: string): MessagePart {
  const where = `prompt[${index}]`
  switch (block.type) {
    case 'text':
      return { text: block.text }
    case 'image':
    case 'audio':
      return media(block.mimeType, block.data, where)
    case 'resource_link':
      return { text: linkText(block, workspace) }
    case 'resource': {
      const { resource } = block
      if ('blob' in resource)
        return media(resource.mimeType ?? 'application/octet-stream', resource.blob, where)
      return { text: `${placeOf(resource.uri, workspace)}:\n\n${resource.text}` }
    }
    default:
      block satisfies never
      throw invalid(`${where} is of an unknown type. Send text, image, audio, resource_link or resource.`)
  }
}

function media(mimeType: string, data: string, where: string): MessagePart {
  if (!MIME_TYPE.test(mimeType)) throw invalid(`${where} has no valid mimeType.`)
  if (data === '' || !isEitherBase64(data)) throw invalid(`${where} has no base64 data.`)
  return { inlineData: { mimeType, data } }
}

function linkText({ uri, name }: { uri: string; name: string }, workspace: string): string {
  const place = placeOf(uri, workspace)
  return place === name ? place : `${name} (${place})`
}

/** A file of the workspace by the path that the tools take. */
function placeOf(uri: string, workspace: string): string {
  if (!uri.startsWith('file:') || !URL.canParse(uri)) return uri
  try {
    const path = fileURLToPath(uri)
    const inside = relative(workspace, path)
    return inside === '' || inside.startsWith('..') || isAbsolute(inside) ? path : inside
  } catch {
    // A file of another machine.
    return uri
  }
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
