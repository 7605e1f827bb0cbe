import { readFile, stat } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { own } from '../base/own.js'
import { AgentError, messageOf } from '../errors.js'

/** A part of a message, as `runtime.run` takes it. */
export type AttachedPart = { text: string } | { inlineData: { mimeType: string; data: string } }

/** Larger requests are refused by every provider. */
const MOST_BYTES = 20 * 1024 * 1024

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.heic': 'image/heic',
  '.pdf': 'application/pdf',
  '.mp3': 'audio/mpeg',
  '.wav': 'audio/wav',
  '.ogg': 'audio/ogg',
  '.flac': 'audio/flac',
  '.mp4': 'video/mp4',
  '.webm': 'video/webm',
  '.mov': 'video/quicktime',
}

/** Files as parts of a message: text with its name above it, pictures and documents as they are. */
export function readAttachments(files: readonly string[]): Promise<AttachedPart[]> {
  return Promise.all(files.map(readAttachment))
}

async function readAttachment(file: string): Promise<AttachedPart> {
  const bytes = await readBytes(file)
  const mimeType = own(MEDIA_TYPES, extname(file).toLowerCase())
  if (bytes.length === 0) throw invalid(`${file} is empty: there is nothing to attach.`)
  if (mimeType !== undefined) return { inlineData: { mimeType, data: bytes.toString('base64') } }
  const text = decode(bytes)
  if (text === undefined) {
    throw invalid(
      `${file} is neither text in UTF-8 nor a known kind of picture, document, sound or film, so it cannot be attached.`,
    )
  }
  return { text: `${basename(file)}:\n\n${text}` }
}

async function readBytes(file: string): Promise<Buffer> {
  try {
    const { size } = await stat(file)
    if (size > MOST_BYTES)
      throw invalid(`${file} has ${Math.ceil(size / 1024 / 1024)} MB, but at most 20 MB can be attached.`)
    return await readFile(file)
  } catch (error) {
    if (error instanceof AgentError) throw error
    throw invalid(`${file} cannot be attached: ${reasonOf(error)}.`)
  }
}

function reasonOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'there is no such file; check its path'
  if (code === 'EISDIR') return 'it is a folder; name the files in it'
  if (code === 'EACCES') return 'it may not be read; check its permissions'
  return messageOf(error)
}

function decode(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
