import { AgentError } from '../errors.js'

/** Where a page of sessions ended: the next one starts behind it. */
export interface PageCursor {
  updatedAt: number
  pk: number
}

/** A cursor as callers see it: opaque, and safe in a URL. */
export function writeCursor({ updatedAt, pk }: PageCursor): string {
  return Buffer.from(JSON.stringify([updatedAt, pk])).toString('base64url')
}

export function readCursor(text: string): PageCursor {
  try {
    const [updatedAt, pk] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[]
    if (Number.isFinite(updatedAt) && Number.isSafeInteger(pk)) {
      return { updatedAt: updatedAt as number, pk: pk as number }
    }
  } catch {
    // Falls through: whatever cannot be read was not written here.
  }
  throw new AgentError('invalid-argument', 'cursor must be the nextCursor of an earlier page', {
    details: { field: 'cursor' },
  })
}
