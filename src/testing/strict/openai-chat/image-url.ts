/** The place of a picture in both of OpenAI's APIs: an address, or a data URL with a type and base64. */
import { isBase64, readDataUrl } from '../../../base/base64.js'
import type { Violation } from '../violation.js'
import { refuse, type ShapeCode } from './words.js'

/** What OpenAI says of a text that is neither. */
export function imageUrlFault(code: ShapeCode, url: string, param: string): Violation | undefined {
  if (/^https?:\/\//.test(url)) return undefined
  const { mimeType = '', data = '' } = readDataUrl(url) ?? {}
  if (/^image\/[a-z+.-]+$/.test(mimeType) && data !== '' && isBase64(data)) return undefined
  return refuse(
    code,
    `Invalid '${param}'. Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got an invalid value.`,
    param,
    'invalid_value',
  )
}
