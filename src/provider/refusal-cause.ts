/**
 * Which part of a request a refusal is about, as far as the error itself says: by status, by the vendor's code, by the
 * place that it names, and by sentences with which a vendor's message begins. What a message quotes further on is never
 * read, because it may be a user's text.
 */
import type { ErrorFacts } from './error-facts.js'

/** The kinds of parts without which a refused request may be sent again. */
export type RefusalCause = 'media'

export interface Refusal {
  /** Absent when only the place is known: then what stands there decides. */
  readonly cause?: RefusalCause
  /** The way to the part in the body: `['messages', '3', 'content', '1']`. Absent when none is named. */
  readonly place?: readonly string[]
  /** The request is too large as a whole. */
  readonly isSize: boolean
}

interface CauseRow {
  readonly cause: RefusalCause
  readonly codes: RegExp
  /** How messages about it begin. */
  readonly words: readonly RegExp[]
}

const CAUSES: readonly CauseRow[] = [
  {
    cause: 'media',
    // The codes of OpenAI's Responses API, which are part of its SDK's types; others use some of them.
    codes:
      /^(invalid_image(_format|_url|_mode)?|invalid_base64_image|image_(too_large|too_small|parse_error|file_too_large|file_not_found)|unsupported_image_media_type|empty_image_file|failed_to_download_image|input_size_error|invalid_file_data|unsupported_file)$/,
    words: [
      // Claude, also behind Bedrock and Vertex.
      /^Could not process (image|PDF|document)/,
      /^image (exceeds|cannot be empty)/,
      /^Image does not match the provided media type/,
      /^At least one of the image dimensions exceed/,
      /^Too much media:/,
      /^The PDF specified was not valid/,
      /^A maximum of \d+ PDF pages may be provided/,
      // OpenAI and Azure.
      /^You uploaded an unsupported image/,
      /^The image data you provided does not represent a valid image/,
      /^The image size must be greater than zero/,
      // Gemini.
      /^Unable to process input (image|document)/,
      /^Provided image is not valid/,
      /^The document has no pages/,
      /^Unsupported MIME type/,
      // Bedrock's Converse.
      /^The number of (images|documents) (in|at|exceeds)/,
      /^Messages can't contain duplicate document names/,
      // Groq, vLLM, Ollama.
      /^Too many images provided/,
      /^(invalid image (data|input)|cannot identify image file)/,
      /^At most \d+ (image|audio|video)\(s\) may be provided/,
      /^Failed to load image/,
      // MiniMax.
      /^invalid params, (too many|the number of) images\b/,
    ],
  },
]

const STATUSES: readonly (number | undefined)[] = [undefined, 400, 413, 415, 422]

/** What a refusal is about; `undefined` for everything that is not the refusal of a part. */
export function refusalOf({ status, codes, message, param }: ErrorFacts): Refusal | undefined {
  if (!STATUSES.includes(status)) return undefined
  const { place, rest } = placeOf(message, param)
  const cause = CAUSES.find(
    row => codes.some(code => row.codes.test(code)) || row.words.some(words => words.test(rest)),
  )?.cause
  const isSize = status === 413 || /^Request payload size exceeds the limit/.test(rest)
  if (cause === undefined && place === undefined && !isSize) return undefined
  return { ...(cause ? { cause } : {}), ...(place ? { place } : {}), isSize }
}

/** Bedrock puts this before the words of the model's own server. */
const WRAPPED = /^The model returned the following errors: /

const PLACE = /^((?:messages|contents|input)(?:[.[]\d+\]?)(?:[.[][\w-]+\]?)*): ?/
const GOOGLE_PLACE = /^Invalid value at '([\w.[\]]+)'/

/** The place that a field of the error names, or with which its message begins, and the message after it. */
function placeOf(message: string, param: string | undefined): { place?: string[]; rest: string } {
  const words = message.slice(0, MOST_READ).replace(WRAPPED, '')
  const leading = PLACE.exec(words)
  const named = param ?? leading?.[1] ?? GOOGLE_PLACE.exec(words)?.[1]
  const rest = leading ? words.slice(leading[0].length) : words
  const place = named?.split(/[.[\]]+/).filter(Boolean)
  const isPart = place !== undefined && /^(messages|contents|input)$/.test(place[0] ?? '') && place.length > 2
  return isPart ? { place, rest } : { rest }
}

/** More than the longest place; the rest may be a text of a user. */
const MOST_READ = 500
