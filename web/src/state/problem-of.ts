import { own } from '../../../src/base/own.js'
import { ClientError } from '../../../src/client/client-error.js'
import type { Problem } from './thread-state.js'

/** Shown while requests get no answer. The page recovers when the server answers again. */
export const SERVER_LOST = 'The server does not answer; trying again'

/** What went wrong, in words that say what to do. Knows the client's errors and those of fetch. */
export function problemOf(error: unknown): Problem {
  if (isUnanswered(error)) {
    return {
      code: 'unreachable',
      message: `${serverAddress()} does not answer. If it was stopped, start it again (lango serve, or npm start in a clone); if it is on another machine, check the network.`,
    }
  }
  const inner = problemDocument(error)
  if (inner) return inner
  return { code: 'internal', message: error instanceof Error ? error.message : String(error) }
}

/** The client gives the status 0 to a request without an answer. */
function isUnanswered(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof ClientError && error.status === 0 && error.retryable)
}

/** The address of this page's server. Tests run without a page. */
function serverAddress(): string {
  return globalThis.location?.origin ?? 'The server'
}

function problemDocument(error: unknown): Problem | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const problem: unknown = Reflect.get(error, 'problem') ?? error
  if (typeof problem !== 'object' || problem === null) return undefined
  const code: unknown = Reflect.get(problem, 'code')
  const message: unknown = Reflect.get(problem, 'detail') ?? Reflect.get(problem, 'message')
  if (typeof code !== 'string' || typeof message !== 'string') return undefined
  return { code, message }
}

/** An error in a few words; what exactly happened stands below it. */
export function errorTitle(code: string): string {
  return own(TITLES, code) ?? 'The answer failed'
}

const TITLES: Readonly<Record<string, string>> = {
  'provider-auth': 'The key was refused',
  'provider-rate-limit': 'Too many requests',
  'provider-quota': 'The account is used up',
  'provider-overloaded': 'The provider is overloaded',
  'provider-unavailable': 'The provider does not answer',
  'provider-rejected': 'The provider refused the request',
  'provider-blocked': 'The provider blocked the answer',
  'provider-stream': 'The answer broke off',
  'context-overflow': 'The chat is too long for this model',
  'output-invalid': 'The answer has not the required form',
  'agent-failed': 'An error in the code of the agent',
  'history-illegal': 'The history breaks the rules of this model',
  'run-interrupted': 'The answer was interrupted',
  'tool-outcome-unknown': 'An earlier action may have happened',
  'session-busy': 'The chat is busy',
  'store-unavailable': 'The database does not answer',
  'invalid-config': 'A setting is wrong',
}

/** What to do about an error, where its own words may not say it. */
export function adviceFor(code: string): string | undefined {
  return own(ADVICE, code)
}

const ADVICE: Readonly<Record<string, string>> = {
  'provider-auth': 'Set the right key where the server runs and restart it, or choose another model.',
  'provider-rate-limit': 'Wait a moment and try again, or switch to another model.',
  'provider-quota': 'The account has no credit left. Top it up or switch to another model.',
  'provider-overloaded': 'The provider is busy. Try again, or switch to another model.',
  'provider-unavailable': 'The provider did not answer. Try again, or switch to another model.',
  'provider-stream': 'The connection to the provider broke. Try again.',
  'context-overflow':
    'The conversation is too long for this model. Start a new chat or switch to one with a larger window.',
  'provider-blocked': 'The provider refused to answer this. Say it differently.',
  'run-interrupted': 'The server stopped in the middle of this answer. Nothing that was stored is lost.',
  'session-busy': 'Another answer is being written in this chat. Wait for it or stop it.',
  'store-unavailable': 'The database does not answer. Check it and try again.',
}
