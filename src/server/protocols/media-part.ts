import type { RunInput } from '../../runtime/runtime.js'
import { badField } from './read-body.js'

/** A part of a message, as a run takes it. */
export type InputPart = NonNullable<RunInput['parts']>[number]

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w-]+=[^;,]*)*;base64,([A-Za-z0-9+/]*={0,2})$/

export interface Media {
  url: string
  /** What it is, when the URL does not say. */
  mimeType: string
  name?: string | undefined
  /** The field to blame. */
  field: string
}

/** A file that came as a data URL, or one that the model's provider fetches from where it is. */
export function mediaPart({ url, mimeType, name, field }: Media): InputPart {
  const named = name === undefined ? {} : { displayName: name }
  if (url.startsWith('data:')) {
    const [, type = mimeType, data = ''] = DATA_URL.exec(url) ?? []
    if (data === '') throw badField(field, `${field} is a data URL that cannot be read: base64 is needed.`)
    return { inlineData: { mimeType: type, data, ...named } }
  }
  if (!/^https?:\/\//i.test(url)) throw badField(field, `${field} must be a data: or an https: URL.`)
  return { fileData: { fileUri: url, mimeType: typeByEnding(url) ?? mimeType, ...named } }
}

/** Some providers want to know what they are about to fetch. */
function typeByEnding(url: string): string | undefined {
  const ending = /\.([a-z0-9]+)$/i.exec(url.split(/[?#]/, 1)[0] ?? '')?.[1]?.toLowerCase()
  return TYPES.get(ending ?? '')
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['pdf', 'application/pdf'],
])
