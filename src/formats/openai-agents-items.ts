/**
 * Items of the OpenAI Agents SDK (`result.history`, its sessions) as neutral messages, and back. They are
 * Responses items in camel case, with results that name their tool.
 */

import { isRecord } from '../base/is-record.js'
import { type MediaPart, mediaUrl, type ProviderPart, resultText } from '../provider/provider.js'
import { joinItems } from './wire-messages.js'
import {
  argumentsOf,
  bareResult,
  citations,
  type Fields,
  foreignPart,
  isTextPart,
  mediaFrom,
  reasoningPart,
  recordsOf,
  type SourceMessage,
  text,
  textOr,
  toolResult,
  type WireMessage,
} from './wire-parts.js'

/** Whether an item is one of the Agents SDK and not of the Responses API. */
export function isAgentsItem(item: Fields): boolean {
  if (item.type === 'function_call_result' || item.type === 'hosted_tool_call') return true
  if ('providerData' in item || recordsOf(item.content).some(part => 'providerData' in part)) return true
  return typeof item.callId === 'string' && typeof item.type === 'string'
}

/** The items of a run that waits, as `RunState` writes it. */
export function itemsOfRunState(data: Fields): Fields[] | undefined {
  if (typeof data.$schemaVersion !== 'string' || !Array.isArray(data.generatedItems)) return undefined
  const { originalInput: input } = data
  const asked = typeof input === 'string' ? [{ role: 'user', content: input }] : recordsOf(input)
  // A question to a person repeats the call that it is about.
  const made = recordsOf(data.generatedItems).filter(({ type }) => type !== 'tool_approval_item')
  return [...asked, ...made.flatMap(({ rawItem }) => recordsOf([rawItem]))]
}

export function readAgentsItems(items: readonly Fields[]): WireMessage[] {
  return joinItems(items, readItem, index => `[${index}]`)
}

function readItem(item: Fields): { role: string; parts: ProviderPart[]; joins: boolean } {
  switch (item.type) {
    case 'function_call': {
      const args = argumentsOf(item.arguments)
      const call: ProviderPart = { type: 'tool-call', id: text(item.callId), name: text(item.name), args }
      return { role: 'assistant', parts: [call], joins: true }
    }
    case 'function_call_result': {
      const { output } = item
      const content = isRecord(output) ? [output] : output
      const result = toolResult(text(item.callId), text(item.name), content, contentPart)
      return { role: 'tool', parts: [result], joins: true }
    }
    case 'reasoning': {
      const words = recordsOf(item.rawContent ?? item.content).map(({ text: written }) => text(written))
      const more = isRecord(item.providerData) ? item.providerData : {}
      const sealed = textOr(more.encrypted_content ?? more.encryptedContent)
      return { role: 'assistant', parts: [reasoningPart(words.join('\n'), sealed, 'openai')], joins: true }
    }
    case undefined:
    case 'message': {
      const role = text(item.role)
      return { role, parts: contentParts(item.content), joins: role === 'assistant' }
    }
    default:
      return {
        role: 'assistant',
        parts: [foreignPart('openai', item, `[${text(item.type)}]`)],
        joins: true,
      }
  }
}

function contentParts(content: unknown): ProviderPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return recordsOf(content).flatMap(part => [contentPart(part), ...sourcesOf(part)])
}

/** The pages that a text cites. */
function sourcesOf({ providerData }: Fields): ProviderPart[] {
  return isRecord(providerData) ? citations('openai', providerData.annotations) : []
}

function contentPart(part: Fields): ProviderPart {
  if (isTextPart(part)) return { type: 'text', text: text(part.text) }
  switch (part.type) {
    case 'refusal':
      return { type: 'text', text: text(part.refusal) }
    case 'image':
    case 'input_image':
      return imageOf(part)
    case 'input_file':
      return fileOf(part)
    case 'audio':
    case 'input_audio': {
      const { audio } = part
      const data = isRecord(audio) ? text(audio.data) : text(audio)
      return { type: 'media', mimeType: `audio/${text(part.format) || 'wav'}`, data }
    }
    default:
      return foreignPart('openai', part)
  }
}

function imageOf(part: Fields): ProviderPart {
  const { image = part.imageUrl ?? part.image_url } = part
  if (typeof image === 'string') return mediaFrom(image, 'image/png')
  if (!isRecord(image)) return foreignPart('openai', part)
  if (typeof image.url === 'string') return mediaFrom(image.url, 'image/png')
  if (typeof image.data === 'string')
    return { type: 'media', mimeType: text(image.mediaType) || 'image/png', data: image.data }
  return foreignPart('openai', part)
}

function fileOf(part: Fields): ProviderPart {
  const { file } = part
  const address = typeof file === 'string' ? file : isRecord(file) ? text(file.url ?? file.data) : ''
  if (address === '') return foreignPart('openai', part)
  const name = typeof part.filename === 'string' ? { name: part.filename } : {}
  return { ...mediaFrom(address, 'application/pdf'), ...name }
}

/** Items, as a session or the input of a run takes them. */
export function writeAgentsItems(messages: readonly SourceMessage[]): Fields[] {
  return messages.flatMap(({ role, parts }): Fields[] => {
    if (parts.length === 0) return []
    if (role === 'system') return [{ type: 'message', role, content: parts.map(wordsOf).join('\n') }]
    if (role === 'assistant' || role === 'tool') return answerItems(parts)
    return [{ type: 'message', role: 'user', content: parts.map(inputOf) }]
  })
}

/** Texts that follow each other are one message; calls, results and thoughts are items of their own. */
function answerItems(parts: readonly ProviderPart[]): Fields[] {
  const items: Fields[] = []
  let said: Fields[] | undefined
  for (const part of parts) {
    const item = ownItem(part)
    if (item) {
      items.push(item)
      said = undefined
    } else if (said) said.push(outputOf(part))
    else {
      said = [outputOf(part)]
      items.push({ type: 'message', role: 'assistant', status: 'completed', content: said })
    }
  }
  return items
}

function ownItem(part: ProviderPart): Fields | undefined {
  switch (part.type) {
    case 'tool-call': {
      const written = JSON.stringify(part.args ?? {})
      const { id: callId, name } = part
      return { type: 'function_call', callId, name, arguments: written, status: 'completed' }
    }
    case 'tool-result': {
      const { id: callId, name, media = [] } = part
      const { result, isError } = bareResult(part)
      // Nothing else in an item says that it is a failure.
      const words = typeof result === 'string' && !isError ? result : resultText(part.result)
      const output = media.length === 0 ? words : [{ type: 'input_text', text: words }, ...media.map(inputOf)]
      return { type: 'function_call_result', callId, name, status: 'completed', output }
    }
    case 'reasoning': {
      const { signature, origin } = part
      const sealed = origin?.vendor === 'openai' && signature !== undefined
      const providerData = sealed ? { providerData: { encrypted_content: signature } } : {}
      const content = part.text === '' ? [] : [{ type: 'input_text', text: part.text }]
      return { type: 'reasoning', content, ...providerData }
    }
    case 'vendor':
      return isRecord(part.value) && part.value.type === 'hosted_tool_call' ? part.value : undefined
    case 'text':
    case 'media':
      return undefined
    default:
      return part satisfies never
  }
}

function wordsOf(part: ProviderPart): string {
  return 'text' in part && typeof part.text === 'string' ? part.text : JSON.stringify(part)
}

function outputOf(part: ProviderPart): Fields {
  if (part.type !== 'media') return { type: 'output_text', text: wordsOf(part) }
  const { mimeType, data } = part
  if (mimeType.startsWith('audio/') && data !== undefined)
    return { type: 'audio', audio: data, format: mimeType.slice('audio/'.length) }
  return { type: 'image', image: mediaUrl(part) }
}

function inputOf(part: ProviderPart): Fields {
  return part.type === 'media' ? inputMedia(part) : { type: 'input_text', text: wordsOf(part) }
}

function inputMedia(part: MediaPart): Fields {
  const { mimeType, data, name } = part
  if (mimeType.startsWith('image/')) return { type: 'input_image', image: mediaUrl(part) }
  if (mimeType.startsWith('audio/') && data !== undefined)
    return { type: 'audio', audio: data, format: mimeType.slice('audio/'.length) }
  return { type: 'input_file', file: mediaUrl(part), ...(name === undefined ? {} : { filename: name }) }
}
