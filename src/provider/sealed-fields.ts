/**
 * Fields of a gateway in the place of a signature: base64 of their JSON. They are kept and sent back as they came.
 */
import { decodeBase64, encodeBase64 } from '../base/base64.js'
import { isRecord } from '../base/is-record.js'

/** One entry of `reasoning_details`: `reasoning.text`, `reasoning.summary`, `reasoning.encrypted`, or a newer type. */
export type ReasoningDetail = Readonly<Record<string, unknown>>

/** A signature that holds these fields. */
export function sealFields(fields: unknown): string {
  return encodeBase64(JSON.stringify(fields))
}

/** The fields of such a signature; `undefined` for every other one. */
export function openFields(signature: string | undefined): unknown {
  // An object or a list of objects: the first bytes of both are known.
  if (!/^(eyJ|W3si)/.test(signature ?? '')) return undefined
  try {
    return JSON.parse(decodeBase64(signature ?? ''))
  } catch {
    return undefined
  }
}

/** The details in the signature of an answer's reasoning. */
export function openDetails(signature: string | undefined): ReasoningDetail[] {
  const details = openFields(signature)
  return Array.isArray(details) ? details.filter(isRecord) : []
}
