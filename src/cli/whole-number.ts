import { AgentError } from '../errors.js'

/** The whole number that an option gives, or `undefined` when it was not given. */
export function wholeNumber(
  name: string,
  text: string | undefined,
  least: number,
  most = MOST,
): number | undefined {
  if (text === undefined) return undefined
  const number = Number(text)
  if (!/^\d{1,15}$/.test(text) || number < least || number > most) {
    const range = most === MOST ? `of at least ${least}` : `from ${least} to ${most}`
    throw new AgentError('invalid-argument', `${name} is "${text}", but must be a whole number ${range}.`)
  }
  return number
}

const MOST = Number.MAX_SAFE_INTEGER
