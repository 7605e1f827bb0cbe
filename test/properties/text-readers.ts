/** What reads text of users, models, tools and servers, and texts that are hard to read. */
import {
  decodeBase64,
  encodeBase64,
  isBase64,
  isEitherBase64,
  plainBase64,
  readDataUrl,
} from '../../src/base/base64.js'
import { isTimeZone, parseCron } from '../../src/base/cron.js'
import { readDueTime } from '../../src/base/due-time.js'
import * as json from '../../src/base/json.js'
import { withoutBom } from '../../src/base/json.js'
import { isSignedType, readMediaHeader, signedType } from '../../src/base/media-header.js'
import { isAdkTool, isAgentName, isRequestTool } from '../../src/base/names.js'
import { isSecretName, redact, redactText } from '../../src/base/redact.js'
import { stableJson } from '../../src/base/stable-json.js'
import { suggest, unknownKeyText } from '../../src/base/suggest.js'
import { tidyTitle, titleOfMessage } from '../../src/base/title.js'
import { parseTraceparent } from '../../src/base/trace-context.js'
import { formatArguments, formatResult } from '../../src/cli/chat/format.js'
import {
  fitText,
  padText,
  pipeText,
  plainLine,
  plainText,
  textWidth,
  wrapped,
} from '../../src/cli/plain-text.js'
import { readServerEvents } from '../../src/client/create-client.js'
import { substitute } from '../../src/config/substitute.js'
import { messageOf } from '../../src/errors.js'
import { AnswerAssembly } from '../../src/provider/assemble-stream.js'
import { argumentsFor } from '../../src/provider/demo/demo-provider.js'
import { openSignature } from '../../src/provider/provider.js'
import { toProviderError } from '../../src/provider/provider-error.js'
import { shortened, wordsOfPage } from '../../src/provider/provider-fetch.js'
import { refusalOf } from '../../src/provider/refusal-cause.js'
import { readArguments } from '../../src/provider/repair/fix-arguments.js'
import { shortenOutput } from '../../src/session/shorten-output.js'
import { countTextTokens, utf8Length } from '../../src/session/tokens.js'
import { previewOf } from '../../src/store/listing.js'
import { splitRequest } from '../../src/store/request-parts.js'
import { restoreText, storableText } from '../../src/store/storable-text.js'
import { htmlToText } from '../../src/tools/html-to-text.js'
import { formatValue, summarize } from '../../web/src/state/format.js'
import { inlineFiles } from '../../web/src/state/inline-files.js'
import { isTooComplex, markdownBlocks } from '../../web/src/state/markdown-blocks.js'
import { withDollars, withTexAsCode } from '../../web/src/state/math-pieces.js'

const CONTEXT = {
  provider: 'p',
  model: 'm',
  secrets: ['sk-secret-key'],
  origin: { vendor: 'openai' as const, model: 'm' },
}

export type Reader = (text: string) => unknown

/** Every exported function that reads text from outside. */
export const READERS: Readonly<Record<string, Reader>> = {
  tidyTitle,
  titleOfMessage,
  redactText,
  redact: text => redact({ text, list: [text] }),
  isSecretName,
  readDueTime,
  parseCron,
  isTimeZone,
  isAdkTool,
  isAgentName,
  isRequestTool,
  isSignedType,
  signedType,
  readMediaHeader,
  isBase64,
  isEitherBase64,
  plainBase64,
  refusalOf: text => refusalOf({ message: text, status: 400, codes: [], names: [] }),
  readDataUrl,
  parseTraceparent,
  suggest: text => suggest(text, ['alpha', 'beta']),
  unknownKeyText: text => unknownKeyText(text, ['alpha', 'beta']),
  parseJson: json.parseJson,
  toJson: json.toJson,
  toJsonData: json.toJsonData,
  stableJson,
  encodeBase64,
  decodeBase64: text => decodeBase64(encodeBase64(text)),
  withoutBom,
  messageOf: text => messageOf({ text }),
  shortenOutput: text => shortenOutput(text, 100),
  'shortenOutput, JSON': text => shortenOutput(JSON.stringify({ a: text, b: [text] }), 100),
  countTextTokens,
  utf8Length,
  plainText,
  pipeText,
  plainLine,
  textWidth,
  fitText: text => fitText(text, text.length >> 1),
  padText: text => padText(text, 80),
  wrapped: text => wrapped(text, '  ', 80),
  'wrapped, wide': text => wrapped(text, '', 1e9),
  formatArguments: text => formatArguments({ text }),
  formatResult,
  htmlToText,
  markdownBlocks,
  isTooComplex,
  withDollars,
  withTexAsCode,
  formatValue,
  summarize: text => summarize({ text }),
  inlineFiles: text =>
    inlineFiles('', [{ name: 'a', mimeType: 'text/plain', data: Buffer.from(text).toString('base64') }]),
  substitute: text => substitute({ text }, {}),
  toProviderError: text => toProviderError(new Error(text), CONTEXT),
  'toProviderError, body': text => toProviderError({ error: { message: text, type: text } }, CONTEXT),
  shortened,
  wordsOfPage,
  readArguments,
  openSignature,
  argumentsFor: text => argumentsFor({ type: 'object', properties: { a: { type: 'number' } } }, text),
  'AnswerAssembly, pieces': text => assemble(text, undefined),
  'AnswerAssembly, a name with each piece': text => assemble(text, 'tool'),
  previewOf,
  storableText,
  restoreText,
  splitRequest,
  readServerEvents: async text => {
    const pieces = text.match(/[\s\S]{1,512}/g) ?? []
    const body = ReadableStream.from(pieces.map(piece => new TextEncoder().encode(piece)))
    for await (const event of readServerEvents(body)) void event
  },
}

function assemble(text: string, name: string | undefined): unknown {
  const answer = new AnswerAssembly(CONTEXT)
  answer.callPiece({ index: 0, name: 'tool' })
  for (let at = 0; at < text.length; at += 16) {
    answer.callPiece({ index: 0, name, args: text.slice(at, at + 16) })
  }
  answer.finish('stop')
  return answer.end()
}

/** Texts that repeat the beginning of what a reader looks for, without its end. */
export const PIECES: readonly string[] = [
  ...' \n\t"\'\\`[{(<>*_-.&$@:/|#~=+?a1Aé'.split(''),
  ...[
    '\r\n',
    'a ',
    'a@',
    'a.',
    'a-',
    'a:',
    '](',
    '![',
    '[a]',
    '\n[',
    '\n[a](',
    '\n [a',
    '[{',
    '{"a":',
    '\\"',
    '|a|\n',
  ],
  ...[
    '<a ',
    '<a href=',
    '<!--',
    '<script>',
    '<think>',
    '&#',
    '&amp',
    '```\n',
    '~~~\n',
    '> ',
    '- ',
    '**a ',
    '*a_',
  ],
  ...[
    'sk-',
    'sk-abc ',
    'eyJ',
    'eyJ-',
    'eyJaaaaaaaa.',
    'AIza',
    'ya29.',
    'Bearer ',
    'Bearer  ',
    '://',
    'a://',
    'a://b:',
  ],
  ...[
    '?key=',
    'api-',
    'keyKey_',
    'input token count',
    'exceed context ',
    '${',
    '${a',
    '${a:-',
    'data: a\n',
    'data: a\n\n',
  ],
  ...[
    '\u001b',
    '\u001b[',
    '\u001b]',
    '\u001b[0;',
    '\u001b ',
    '\u009b0 ',
    '\u0007',
    '\u0301',
    '\u200d',
    '👩‍👩‍👧',
    '\ud800',
  ],
]
