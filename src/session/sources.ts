/**
 * Where an answer comes from, as people read it. Gemini's metadata is the form in which every vendor's sources are
 * stored: pages that ground the answer, works that it quotes, pages that were fetched.
 */
import { isRecord } from '../base/is-record.js'

/** A page, place or document that an answer names as its source. */
export interface Source {
  /** Only `http` and `https` addresses are links. */
  url: string
  title?: string
}

/** The sources in the metadata of an event, or in the further fields of a stored message. Each address once. */
export function sourcesOf(metadata: object): Source[] {
  const { groundingMetadata, citationMetadata, urlContextMetadata } = metadata as Record<string, unknown>
  const found = new Map<string, Source>()
  for (const source of [
    ...listOf(groundingMetadata, 'groundingChunks').flatMap(chunkSources),
    ...[...listOf(citationMetadata, 'citations'), ...listOf(citationMetadata, 'citationSources')].flatMap(
      citation => toSource(citation.uri, citation.title),
    ),
    ...listOf(urlContextMetadata, 'urlMetadata').flatMap(fetchedSources),
  ]) {
    const known = found.get(source.url)
    if (!known || (known.title === undefined && source.title !== undefined)) found.set(source.url, source)
  }
  return [...found.values()]
}

function listOf(value: unknown, key: string): Record<string, unknown>[] {
  const list = isRecord(value) ? value[key] : undefined
  return Array.isArray(list) ? list.filter(isRecord) : []
}

function chunkSources({ web, maps, retrievedContext, image }: Record<string, unknown>): Source[] {
  if (isRecord(image)) return toSource(image.sourceUri, image.title)
  const page = [web, maps, retrievedContext].find(isRecord)
  return page ? toSource(page.uri, page.title) : []
}

function fetchedSources({ retrievedUrl, urlRetrievalStatus }: Record<string, unknown>): Source[] {
  return String(urlRetrievalStatus).endsWith('SUCCESS') ? toSource(retrievedUrl, undefined) : []
}

function toSource(url: unknown, title: unknown): Source[] {
  if (typeof url !== 'string' || url === '') return []
  return [{ url, ...(typeof title === 'string' && title !== '' ? { title } : {}) }]
}
