/**
 * Which part of a request a refusal is about, as far as the error itself says: by status, by the vendor's code, by the
 * place that it names, and by sentences with which a vendor's message begins. What a message quotes further on is never
 * read, because it may be a user's text.
 */
import { defined } from '../base/defined.js'
import { isRecord } from '../base/is-record.js'
import { parseJson } from '../base/json.js'
import { type ErrorFacts, readErrorFacts } from './error-facts.js'

/** The kinds of parts without which a refused request may be sent again. */
export type RefusalCause = 'media' | 'seal'

export interface Refusal {
  /** Absent when only the place is known: then what stands there decides. */
  readonly cause?: RefusalCause
  /** The way to the part in the body: `['messages', '3', 'content', '1']`. Absent when none is named. */
  readonly place?: readonly string[]
  /** The request is too large as a whole. */
  readonly isSize: boolean
  /** The vendor says this of many faults, among them pictures of a type that its page does not list. */
  readonly isVague?: true
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
      /^The image was specified using the \S+ media type/,
      /^Image format \S+ not supported/,
      /^At least one of the image dimensions exceed/,
      /^Too much media:/,
      /^The PDF specified (was|is) /,
      /^A maximum of \d+ PDF pages may be provided/,
      // OpenAI and Azure.
      /^You uploaded an unsupported image/,
      /^The image data you provided does not represent a valid image/,
      /^The image size must be greater than zero/,
      /^Invalid (base64 )?image(_url)?\b/,
      /^Invalid MIME type\. Only image types are supported/,
      /^(Failed to download|Error while downloading|Timeout while downloading) /,
      /^unsupported image\b/i,
      // Gemini.
      /^Unable to process input (image|document)/,
      /^Provided image is not valid/,
      /^The document has no pages/,
      /^(Unsupported|Invalid) MIME type/i,
      // Bedrock's Converse.
      /^The number of (images|documents) (in|at|exceeds)/,
      /^Messages can't contain duplicate document names/,
      // Groq, vLLM, Ollama.
      /^Too many images provided/,
      /^(invalid image (data|input|type)|cannot identify image file|illegal base64 data)/,
      /^Failed to apply \w+Processor on data=/,
      /^At most \d+ (image|audio|video)\(s\) may be provided/,
      /^Failed to load image/,
      // MiniMax, and Qwen on DashScope.
      /^invalid params, (too many|the number of) images\b/,
      /^The image (length and width do not meet|format is illegal)/,
      /^(Multimodal (file|data)|Failed to download multimodal|Download multimodal file)\b/,
    ],
  },
  {
    cause: 'seal',
    codes: /^invalid_encrypted_content$/,
    words: [
      // Claude, also behind Bedrock, Vertex and gateways that lose the quotation marks.
      /^Invalid [`'"]?(signature|data)[`'"]? in [`'"]?(redacted_)?thinking/,
      /^Invalid [`'"]?encrypted_\w+[`'"]? in /,
      /^[`'"]?(redacted_)?thinking[`'"]?( or [`'"]?redacted_thinking[`'"]?)? blocks in the latest assistant message cannot be modified/,
      /^The block is bound to a different conversation/,
      // Gemini, also on Vertex.
      /^(Corrupted|Invalid) thought[ _]?signature/i,
      /^Thought[ _]?signature is not valid/i,
      // OpenAI, Azure and xAI.
      /^The encrypted content .{0,300}could not be (verified|decrypted)/,
      /^(Could not decrypt|Failed to decrypt) /,
    ],
  },
]

const STATUSES: readonly (number | undefined)[] = [undefined, 400, 413, 415, 422]

/** What a refusal is about; `undefined` for everything that is not the refusal of a part. */
export function refusalOf(given: ErrorFacts): Refusal | undefined {
  if (!STATUSES.includes(given.status)) return undefined
  const { codes, message, param } = innermost(given)
  const { place, rest } = placeOf(message, param)
  const cause = CAUSES.find(
    row => codes.some(code => row.codes.test(code)) || row.words.some(words => words.test(rest)),
  )?.cause
  const isSize = given.status === 413 || /^Request payload size exceeds the limit/.test(rest)
  const isVague = VAGUE.test(rest) ? { isVague: true as const } : undefined
  if (cause === undefined && place === undefined && !isSize && !isVague) return undefined
  return { ...(cause ? { cause } : {}), ...(place ? { place } : {}), isSize, ...isVague }
}

/** Gemini, of BMP and GIF: gemini-cli issue 14838, gcli2api issue 297. */
const VAGUE = /^Request contains an invalid argument\.?$/

/** A gateway puts words of its own before the vendor's: its name, a status, and that there was an error. */
const PREFIXES: readonly RegExp[] = [
  /^(the model returned the following errors|unable to submit request because|provider returned error|data):? */i,
  /^(error code: |http )?<?\d{3}>?:? *(?:- *)?/i,
  // One of `BadRequestError: `, `openai error: ` and `VertexAIException BadRequestError - `.
  /^[\w.]{0,60}(?:error|exception|invalidparameter|request)(?: \w{0,40}(?:error|exception))?(?:: | - )/i,
  /^\w{0,40} (?:error|exception): /i,
  /^error from provider ?\([^()]{0,100}\): */i,
  /^\[[\w./: -]{1,80}\]:? */,
]

/** Prefixes that are taken off, and bodies that are opened, before it is no gateway's message any more. */
const MOST_WRAPPED = 8

/** The vendor's own error in that of a gateway: words before it are left out, and a body that stands in a text is read. */
function innermost(facts: ErrorFacts): Pick<ErrorFacts, 'codes' | 'message' | 'param'> {
  let { message, codes, param } = facts
  for (let count = 0; count < MOST_WRAPPED; count += 1) {
    const body = bodyIn(message)
    if (body) {
      const inner = readErrorFacts({ error: body })
      codes = [...codes, ...inner.codes]
      param = inner.param ?? param
      if (inner.message === message) break
      message = inner.message
      continue
    }
    const prefix = PREFIXES.map(pattern => pattern.exec(message.slice(0, MOST_READ))?.[0]).find(Boolean)
    if (!prefix) break
    message = message.slice(prefix.length)
  }
  return { message, codes, ...defined({ param }) }
}

/** A longer text is no error of a vendor. */
const MOST_PARSED = 20_000

function bodyIn(text: string): Record<string, unknown> | undefined {
  const start = /^\s*(?:b['"])?[[{]/.exec(text)
  if (!start || text.length > MOST_PARSED) return undefined
  const from = start[0].length - 1
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  const value = parseJson(text.slice(from, end + 1))
  const body: unknown = Array.isArray(value) ? value[0] : value
  if (!isRecord(body)) return undefined
  const error = isRecord(body.error) ? body.error : body
  const upstream = [error.upstream_error, error.upstreamResponse, error.upstream].find(isRecord)
  return upstream ?? body
}

const PLACE = /^((?:messages|contents|input)(?:[.[]\d+\]?)(?:[.[][\w-]+\]?)*): ?/
/** Google's and OpenAI's. */
const QUOTED_PLACE = /^Invalid (?:value at )?'([\w.[\]]+)'/

/** The place that a field of the error names, or with which its message begins, and the message after it. */
function placeOf(message: string, param: string | undefined): { place?: string[]; rest: string } {
  const words = message.slice(0, MOST_READ)
  const leading = PLACE.exec(words)
  const rest = leading ? words.slice(leading[0].length) : words
  const named = [param, leading?.[1], QUOTED_PLACE.exec(words)?.[1]]
  for (const name of named) {
    const place = name?.split(/[.[\]]+/).filter(Boolean)
    if (place && place.length > 2 && /^(messages|contents|input)$/.test(place[0] ?? ''))
      return { place, rest }
  }
  return { rest }
}

/** More than the longest place; the rest may be a text of a user. */
const MOST_READ = 500
