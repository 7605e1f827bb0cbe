/**
 * The sandbox of Claude's code execution. Its id comes with an answer and is sent with the next request, so that files and
 * variables are still there; it is kept as a part of the answer that is never sent as a block.
 */
import { isRecord } from '../../base/is-record.js'
import type { ProviderMessage, ProviderPart } from '../provider.js'

export interface ContainerWire {
  id?: string
  expires_at?: string | null
}

/** A container as the value of a part. */
export interface ContainerValue {
  type: 'container'
  id: string
  expires_at?: string
}

/** What a person reads of it. */
export const CONTAINER_TEXT = 'The sandbox of the code is kept.'

export function toContainer(container: ContainerWire | null | undefined): ContainerValue | undefined {
  if (!container?.id) return undefined
  return {
    type: 'container',
    id: container.id,
    ...(container.expires_at ? { expires_at: container.expires_at } : {}),
  }
}

export function isContainer(part: ProviderPart): boolean {
  return part.type === 'vendor' && isContainerValue(part.value)
}

/** One that has expired is refused, and the code in it is lost. */
export function isAlive(part: ProviderPart, now = Date.now()): boolean {
  if (part.type !== 'vendor' || !isContainerValue(part.value)) return false
  const { expires_at: expires } = part.value
  return expires === undefined || !(Date.parse(expires) <= now)
}

/** The newest container of a history that still exists. */
export function containerOf(messages: readonly ProviderMessage[]): string | undefined {
  const part = messages.flatMap(({ parts }) => parts).findLast(isContainer)
  return part?.type === 'vendor' && isAlive(part) ? (part.value as ContainerValue).id : undefined
}

function isContainerValue(value: unknown): value is ContainerValue {
  return isRecord(value) && value.type === 'container' && typeof value.id === 'string'
}
