/**
 * How large pictures and documents may be, and how many a request may hold, as the sources say. Where sources differ a
 * limit has several readings: the highest decides what is left out before a request is sent, the lowest is what a server
 * may refuse, and then the request is sent once more without what it named. `documented` is what can be read on a page of
 * the vendor that was at hand; what is only told about such a page, or about a refusal, is `reported`, and a limit that
 * only reports name is never a reason to leave something out.
 *
 * Sizes are characters of base64, as they travel.
 */
export interface MediaLimit {
  readonly what:
    | 'size' /** Of one picture or document. */
    | 'side' /** The longer side of one picture, in pixels. */
    | 'pixels' /** Width times height of one picture. */
    | 'count' /** How many a request or a message may hold. */
    | 'total' /** Of all media of a request. */
  readonly of: MediaKind | 'media'
  readonly per: 'item' | 'message' | 'request'
  /** It applies to requests with more pictures than this. */
  readonly above: number
  readonly readings: readonly LimitReading[]
}

export type MediaKind = 'image' | 'document'

export interface LimitReading {
  /** `Infinity`: this source knows no such limit. */
  readonly most: number
  readonly source: string
  /** When the source said so, as far as it is known. */
  readonly date: string
  readonly certainty: 'documented' | 'reported'
}

/** `documented`: what every source agrees is refused. `strict`: what any source says is refused. */
export type LimitsReading = 'documented' | 'strict'

/** The limit by a reading of the sources. */
export function mostOf({ readings }: MediaLimit, reading: LimitsReading): number {
  const all = readings.map(({ most }) => most)
  if (reading === 'strict') return Math.min(...all)
  return readings.some(({ certainty }) => certainty === 'documented') ? Math.max(...all) : Infinity
}

const MB = 1024 * 1024

/** The characters of base64 for so many bytes of a file. */
const encoded = (bytes: number) => Math.ceil(bytes / 3) * 4

type ReadingRow = readonly [most: number, source: string, date: string, certainty?: 'reported']

function toReadings(rows: readonly ReadingRow[]): LimitReading[] {
  return rows.map(([most, source, date, reported]) => ({
    most,
    source,
    date,
    certainty: reported ?? 'documented',
  }))
}

function perItem(what: 'size' | 'side' | 'pixels', of: MediaKind, ...rows: ReadingRow[]): MediaLimit {
  return { what, of, per: 'item', above: 0, readings: toReadings(rows) }
}

function count(of: MediaKind, per: 'message' | 'request', ...rows: ReadingRow[]): MediaLimit {
  return { what: 'count', of, per, above: 0, readings: toReadings(rows) }
}

function total(...rows: ReadingRow[]): MediaLimit {
  return { what: 'total', of: 'media', per: 'request', above: 0, readings: toReadings(rows) }
}

const CLAUDE_VISION = 'platform.claude.com: Images and vision'
const CLAUDE_THREADS = 'claude-code issues 10395, 29551 and 34025, pi issue 401'
const CLAUDE_OVERVIEW = 'platform.claude.com: API overview, request size limits'

const CLAUDE_PIXELS: readonly MediaLimit[] = [
  perItem('side', 'image', [8000, CLAUDE_VISION, '2026-07']),
  {
    what: 'side',
    of: 'image',
    per: 'item',
    above: 20,
    readings: toReadings([[2000, CLAUDE_VISION, '2026-07']]),
  },
  count(
    'image',
    'request',
    [100, `${CLAUDE_VISION}, models with a window of 200k`, '2026-07'],
    [600, `${CLAUDE_VISION}, other models`, '2026-07'],
  ),
]

/** Claude at Anthropic. */
export const CLAUDE_LIMITS: readonly MediaLimit[] = [
  perItem('size', 'image', [5 * MB, CLAUDE_THREADS, '2025', 'reported'], [10 * MB, CLAUDE_VISION, '2026-07']),
  ...CLAUDE_PIXELS,
  total([32 * MB, CLAUDE_OVERVIEW, '2026-07']),
]

/** Claude on Bedrock and Vertex AI. */
export const CLAUDE_PLATFORM_LIMITS: readonly MediaLimit[] = [
  perItem('size', 'image', [5 * MB, CLAUDE_VISION, '2026-07']),
  ...CLAUDE_PIXELS,
  total(
    [20 * MB, `${CLAUDE_OVERVIEW}, Bedrock`, '2026-07', 'reported'],
    [30 * MB, `${CLAUDE_OVERVIEW}, Vertex`, '2026-07', 'reported'],
  ),
]

const OPENAI_VISION = 'platform.openai.com: Images and vision'
const OPENAI_FILES = 'platform.openai.com: File inputs'

export const OPENAI_LIMITS: readonly MediaLimit[] = [
  perItem(
    'size',
    'image',
    [encoded(20 * MB), 'Azure OpenAI error 10044, gptpdf issue 6', '2024', 'reported'],
    [50 * MB, OPENAI_VISION, '2026', 'reported'],
  ),
  perItem(
    'size',
    'document',
    [encoded(32 * MB), OPENAI_FILES, '2025', 'reported'],
    [encoded(50 * MB), OPENAI_FILES, '2026', 'reported'],
  ),
  count('image', 'request', [500, OPENAI_VISION, '2026', 'reported']),
  total([50 * MB, OPENAI_VISION, '2026', 'reported'], [encoded(50 * MB), OPENAI_FILES, '2026', 'reported']),
]

const XAI_VISION = 'docs.x.ai: Image understanding'

export const XAI_LIMITS: readonly MediaLimit[] = [
  perItem(
    'size',
    'image',
    [encoded(10 * MB), XAI_VISION, '2025', 'reported'],
    [encoded(20 * MB), XAI_VISION, '2026', 'reported'],
  ),
]

const GEMINI_FILES = 'ai.google.dev: File input methods'
const GEMINI_IMAGES = 'ai.google.dev: Image understanding'

export const GEMINI_LIMITS: readonly MediaLimit[] = [
  perItem(
    'size',
    'document',
    [encoded(20 * MB), GEMINI_FILES, '2025'],
    [encoded(50 * MB), GEMINI_FILES, '2026-01'],
  ),
  count(
    'image',
    'request',
    [3000, 'cloud.google.com: Image understanding', '2025', 'reported'],
    [3600, GEMINI_IMAGES, '2026', 'reported'],
  ),
  total([20 * MB, GEMINI_FILES, '2025'], [encoded(100 * MB), GEMINI_FILES, '2026-01']),
]

const GROQ_VISION = 'console.groq.com: Images and vision'

export const GROQ_LIMITS: readonly MediaLimit[] = [
  perItem('pixels', 'image', [33_177_600, GROQ_VISION, '2026']),
  count('image', 'request', [5, GROQ_VISION, '2026', 'reported']),
  total([4 * MB, GROQ_VISION, '2026']),
]

export const MINIMAX_LIMITS: readonly MediaLimit[] = [
  count('image', 'request', [50, 'opencode issue 47721', '2026', 'reported']),
]

const CONVERSE_MESSAGE = 'docs.aws.amazon.com: Converse, Message'
const CONVERSE_API = 'docs.aws.amazon.com: Converse, API restrictions'

export const CONVERSE_LIMITS: readonly MediaLimit[] = [
  perItem('size', 'image', [encoded(3.75 * MB), CONVERSE_MESSAGE, '2026'], [Infinity, CONVERSE_API, '2026']),
  perItem('side', 'image', [8000, CONVERSE_MESSAGE, '2026'], [Infinity, CONVERSE_API, '2026']),
  perItem(
    'size',
    'document',
    [encoded(4.5 * MB), CONVERSE_API, '2026'],
    [Infinity, `${CONVERSE_API}, PDF for Claude 4`, '2026'],
  ),
  count('image', 'message', [20, CONVERSE_MESSAGE, '2026'], [Infinity, CONVERSE_API, '2026']),
  count('document', 'message', [5, CONVERSE_MESSAGE, '2026']),
  count('document', 'request', [5, CONVERSE_API, '2026'], [Infinity, CONVERSE_MESSAGE, '2026']),
]
