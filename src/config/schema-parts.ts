/** The small schemas that the configuration is made of, each with its words for what would be right. */
import { z } from 'zod'

/** A text that is not empty. */
export const text = (error = 'must be a text that is not empty') => z.string({ error }).min(1, { error })

/** A text that may be empty, such as a value of an environment. */
export const anyText = z.string({ error: 'must be a text' })

/** True or false. */
export const flag = z.boolean({ error: 'must be true or false' })

/** One of some names. */
export const oneOf = <const Names extends readonly string[]>(names: Names) =>
  z.enum(names, { error: `must be one of: ${names.join(', ')}` })

/** A whole number within bounds. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER) {
  const error =
    most === Number.MAX_SAFE_INTEGER
      ? `must be a whole number of at least ${least}`
      : `must be a whole number from ${least} to ${most}`
  return z.int({ error }).min(least, { error }).max(most, { error })
}

/** A number of at least 0. */
export function amount(error = 'must be a number of at least 0') {
  return z.number({ error }).min(0, { error })
}

/** An address of the web. */
export function webAddress() {
  const error = 'must be an address that begins with http:// or https://'
  return z.string({ error }).refine(value => /^https?:\/\//i.test(value) && URL.canParse(value), { error })
}

/** The address of a store. */
export function storeAddress() {
  const error = 'must begin with sqlite:, postgres:// or memory:'
  return z.string({ error }).regex(/^(sqlite:.|postgres(ql)?:\/\/|memory:)/i, { error })
}

/** Texts by their names. */
export const textsByName = z.record(z.string(), anyText, { error: 'must be an object of texts' })

/** An object of known keys. */
export function group<const Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: issue => (issue.code === 'invalid_type' ? 'must be an object' : undefined),
  })
}

/** A list of one kind of thing. */
export function list<Item extends z.ZodType>(item: Item) {
  return z.array(item, { error: 'must be a list' })
}

/** Things that only a program can hold: a tool, an agent or a provider that was made in code. */
export function live<Value extends object>(method: string, error: string) {
  return z.custom<Value>(
    value => typeof value === 'object' && value !== null && typeof Reflect.get(value, method) === 'function',
    { error },
  )
}
