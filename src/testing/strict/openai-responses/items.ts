/**
 * Items of the Responses API and their ids. An id that this server mints says which answer it belongs to,
 * whether that answer was stored, and whether it began with reasoning, and proves it with a MAC: so a
 * request can be judged without any memory, even by another process.
 */
import { defined } from '../../../base/defined.js'
import { type JsonObject, listOf, objectOf, textOf } from '../json.js'
import { mintSeal, openSeal, type SealClaims, shortMac } from '../seal.js'
import { readOnce } from '../violation.js'

export type ItemPrefix = 'rs' | 'fc' | 'msg'

export interface ItemIdentity {
  readonly prefix: ItemPrefix
  /** Twenty hexadecimal digits, the same for all items of one answer. */
  readonly group: string
  readonly index: number
  readonly stored: boolean
  /** True when the answer began with a reasoning item. */
  readonly reasoned: boolean
}

export function mintItemId(identity: ItemIdentity): string {
  const { prefix, group, index, stored, reasoned } = identity
  const flags = (stored ? 1 : 0) + (reasoned ? 2 : 0)
  const claim = `${prefix}_${group}${index.toString(16).padStart(2, '0')}${flags}`
  return claim + shortMac('openai', claim, 12)
}

/** What a minted id says; nothing when it was not minted here. */
export function openItemId(id: unknown): ItemIdentity | undefined {
  const match = /^((rs|fc|msg)_([0-9a-f]{20})([0-9a-f]{2})([0-3]))([0-9a-f]{12})$/.exec(textOf(id))
  if (match === null) return undefined
  const [, claim = '', prefix, group = '', index = '', flags = '', proof] = match
  if (shortMac('openai', claim, 12) !== proof) return undefined
  return {
    prefix: prefix as ItemPrefix,
    group,
    index: Number.parseInt(index, 16),
    stored: (Number(flags) & 1) === 1,
    reasoned: (Number(flags) & 2) === 2,
  }
}

/** The blob in `output_item.added` differs from the one in `output_item.done`; only the latter is good. */
export function mintEncryptedContent(
  id: string,
  stage: 'added' | 'done' = 'done',
  nonce = '',
  { maker = 'openai-responses', account }: { maker?: string; account?: string | undefined } = {},
): string {
  return mintSeal('openai', { use: 'reasoning', id, stage, nonce, maker, ...defined({ account }) }, '')
}

export function openEncryptedContent(blob: unknown): SealClaims | undefined {
  const claims = openSeal('openai', textOf(blob))
  return claims?.use === 'reasoning' ? claims : undefined
}

/** The input as items; a plain string is a user message. */
export const readItems: (body: JsonObject) => readonly JsonObject[] = readOnce(body =>
  typeof body.input === 'string'
    ? [{ type: 'message', role: 'user', content: body.input }]
    : listOf(body.input).map(objectOf),
)

export function typeOf(item: JsonObject): string {
  return textOf(item.type) || (item.role === undefined ? '' : 'message')
}

/** True for what a model says: something that may follow reasoning. */
export function isOutput(item: JsonObject): boolean {
  const type = typeOf(item)
  return (
    type === 'item_reference' ||
    (type.endsWith('_call') && !type.endsWith('_call_output')) ||
    (type === 'message' && item.role === 'assistant')
  )
}

/** The answer that a reasoning item belongs to, by its id or by its blob. */
export function groupOf(item: JsonObject): string | undefined {
  const byId = openItemId(item.id)
  if (byId !== undefined) return byId.group
  return openItemId(openEncryptedContent(item.encrypted_content)?.id)?.group
}
