/** Rules about media for each vendor, with the vendor's error messages. */
import type { JudgeContext, Rule, Violation } from '../violation.js'
import { type MediaFault, mediaRule } from './media-rule.js'

const MB = 1_048_576

/** A41 to A46. */
export const claudeMedia: Rule = mediaRule((fault): Violation => {
  switch (fault.what) {
    case 'type':
    case 'unlisted':
      return refuse('A41', `${claudePlace(fault)}.data: ${mismatch(fault)}`)
    case 'unreadable':
      return refuse('A42', fault.media.kind === 'image' ? 'Could not process image' : 'Could not process PDF')
    case 'size':
      return refuse(
        'A43',
        `${claudePlace(fault)}: image exceeds ${fault.most / MB} MB maximum: ${fault.media.size} bytes > ${fault.most} bytes`,
      )
    case 'side':
    case 'pixels':
      return refuse('A44', `${claudePlace(fault)}.data: ${SIDE}: ${fault.most} pixels`)
    case 'many-side':
      return refuse(
        'A44',
        `${claudePlace(fault)}.data: ${SIDE} for many-image requests: ${fault.most} pixels`,
      )
    case 'count':
      return refuse('A45', `Too much media: 0 document pages + ${fault.count} images > ${fault.most}`)
    case 'total':
      return {
        code: 'A46',
        status: 413,
        message: 'Request exceeds the maximum size',
        errorType: 'request_too_large',
      }
  }
})

const SIDE = 'At least one of the image dimensions exceed max allowed size'

function mismatch({ media }: Extract<MediaFault, { what: 'type' | 'unreadable' | 'unlisted' }>): string {
  return `Image does not match the provided media type ${media.declared}`
}

/** Names of union members stand in Claude's paths: `messages.2.content.0.tool_result.content.1.image.source.base64`. */
function claudePlace({ media }: Extract<MediaFault, { media: unknown }>): string {
  const place = media.place.replace(/^content\.(\d+)\.content\./, 'content.$1.tool_result.content.')
  return `messages.${media.message}.${place}.${media.kind}.source.base64`
}

/** B21 to B25. */
export const converseMedia: Rule = mediaRule((fault): Violation => {
  const said = (code: string, words: string) =>
    refuse(code, `The model returned the following errors: ${words}`)
  switch (fault.what) {
    case 'type':
    case 'unlisted':
      return said('B21', `${conversePlace(fault)}: ${mismatch(fault)}`)
    case 'unreadable':
      return said('B22', 'Could not process image')
    case 'size':
      return said(
        'B23',
        `${conversePlace(fault)}: ${fault.media.kind} exceeds the maximum: ${fault.media.size} bytes > ${fault.most} bytes`,
      )
    case 'side':
    case 'pixels':
    case 'many-side':
      return said('B24', `${conversePlace(fault)}: ${SIDE}: ${fault.most} pixels`)
    case 'count': {
      const at = fault.message === undefined ? 'in the request' : `at messages.${fault.message}.content`
      return refuse('B25', `The number of ${fault.kind}s ${at} exceeds the maximum of ${fault.most}.`)
    }
    case 'total':
      return refuse('B25', 'Input is too long for requested model.')
  }
})

function conversePlace({ media }: Extract<MediaFault, { media: unknown }>): string {
  return `messages.${media.message}.${media.place}.${media.kind}.source.bytes`
}

/** G31 to G35. */
export const geminiMedia: Rule = mediaRule((fault): Violation => {
  switch (fault.what) {
    case 'type':
    case 'unreadable':
    case 'side':
    case 'many-side':
    case 'pixels':
      return refuse(
        'G31',
        'Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
      )
    case 'unlisted':
      return refuse('G35', 'Request contains an invalid argument.')
    case 'size':
      return refuse('G32', `Unable to process input document. It exceeds ${fault.most} bytes.`)
    case 'count':
      return refuse('G33', `Unable to process input image. Too many images: ${fault.count} > ${fault.most}.`)
    case 'total':
      return refuse('G34', `Request payload size exceeds the limit: ${fault.most} bytes.`)
  }
})

/** C21 to C24, and X31 to X33 for compatible servers. */
export const openaiMedia: Rule = mediaRule((fault, context) =>
  context.profile.startsWith('openai') || context.profile === 'xai-responses'
    ? openaiWords(fault)
    : compatibleWords(fault, context),
)

function openaiWords(fault: MediaFault): Violation {
  const said = (code: string, errorCode: string, message: string): Violation => ({
    ...refuse(code, message),
    errorCode,
    param: null,
  })
  switch (fault.what) {
    case 'type':
    case 'unreadable':
    case 'unlisted':
      return said(
        'C21',
        'invalid_image_format',
        "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
      )
    case 'size':
    case 'side':
    case 'many-side':
    case 'pixels':
      return said(
        'C22',
        'image_too_large',
        `The image size must be greater than zero and cannot exceed ${fault.most} bytes.`,
      )
    case 'count':
      return said('C23', 'invalid_image', `Too many images in the request: ${fault.count} > ${fault.most}.`)
    case 'total':
      return { ...said('C24', 'request_too_large', 'Request entity too large'), status: 413 }
  }
}

/** Groq, MiniMax, vLLM, Ollama and others. */
function compatibleWords(fault: MediaFault, { profile }: JudgeContext): Violation {
  switch (fault.what) {
    case 'type':
    case 'unreadable':
    case 'unlisted':
      return refuse('X31', profile === 'ollama' ? 'invalid image input' : 'cannot identify image file')
    case 'size':
    case 'side':
    case 'many-side':
    case 'pixels':
      return refuse('X32', `invalid image data: the image exceeds the limit of ${fault.most}`)
    case 'count':
      return profile === 'groq'
        ? refuse('X33', `Too many images provided. This model supports up to ${fault.most} images`)
        : refuse('X33', `invalid params, too many images: ${fault.count} > ${fault.most}`)
    case 'total':
      return {
        ...refuse('X32', 'Request Entity Too Large'),
        status: 413,
        errorCode: 'request_too_large',
      }
  }
}

function refuse(code: string, message: string): Violation {
  return { code, status: 400, message }
}
