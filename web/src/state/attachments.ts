/** What may be attached, and what to say when it may not. */
import type { AttachedFile } from './api.js'
import { formatBytes } from './format.js'

/** Room for everything in a request besides its attachments. */
const OVERHEAD_BYTES = 64 * 1024

/** The reason why a file of this size cannot join the others, or nothing. */
export function attachmentProblem(
  attached: readonly AttachedFile[],
  file: { name: string; size: number },
  maxBodyBytes: number,
): string | undefined {
  const limit = maxBodyBytes - OVERHEAD_BYTES
  const used = attached.reduce((sum, { data }) => sum + data.length, 0)
  if (used + encodedLength(file.size) <= limit) return undefined
  const most = formatBytes(Math.max(0, Math.floor((limit * 3) / 4)))
  return `${file.name} is too large: all attachments of a message together may have ${most}.`
}

/** How long a file becomes as base64. */
function encodedLength(bytes: number): number {
  return Math.ceil(bytes / 3) * 4
}
