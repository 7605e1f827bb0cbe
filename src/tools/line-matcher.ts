import vm from 'node:vm'
import { AgentError, messageOf } from '../errors.js'

export interface LineMatch {
  /** 1 is the first. */
  line: number
  text: string
}

export interface LineQuery {
  query: string
  regex: boolean
  case_sensitive: boolean
}

/**
 * Finds the lines of a text that match. A model's regular expression may take for ever on an unlucky line and
 * would hold up the whole process, so it runs where it can be interrupted.
 */
export function lineMatcher(query: LineQuery): (text: string, limit: number) => LineMatch[] {
  const pattern = patternOf(query)
  let work: () => LineMatch[] = () => []
  const context = vm.createContext({ run: () => work() })
  const script = new vm.Script('run()')
  return (text, limit) => {
    work = () => matchLines(text, pattern, limit)
    try {
      return script.runInContext(context, { timeout: MATCH_TIMEOUT_MS }) as LineMatch[]
    } catch (error) {
      throw new AgentError(
        'invalid-argument',
        `The pattern ${query.query} takes too long to match. Make it simpler: avoid repetitions within repetitions.`,
        { cause: error },
      )
    }
  }
}

/** Less than anything in the process that must not be late. */
const MATCH_TIMEOUT_MS = 500
const MAX_TEXT_CHARACTERS = 300

function patternOf({ query, regex, case_sensitive }: LineQuery): RegExp {
  const flags = case_sensitive ? 'u' : 'iu'
  if (!regex) return new RegExp(query.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), flags)
  try {
    return new RegExp(query, flags)
  } catch (error) {
    // Without the u flag JavaScript forgives needless backslashes, which other languages allow.
    try {
      return new RegExp(query, flags.replace('u', ''))
    } catch {
      throw new AgentError('invalid-argument', `The query is not a regular expression: ${messageOf(error)}.`)
    }
  }
}

function matchLines(text: string, pattern: RegExp, limit: number): LineMatch[] {
  const matches: LineMatch[] = []
  let line = 0
  for (let start = 0; start <= text.length && matches.length < limit; ) {
    const newline = text.indexOf('\n', start)
    const end = newline === -1 ? text.length : newline
    const content = text.slice(start, text.charCodeAt(end - 1) === 13 && end > start ? end - 1 : end)
    line++
    const at = content.search(pattern)
    if (at !== -1) matches.push({ line, text: excerpt(content, at) })
    start = end + 1
  }
  return matches
}

/** The line, or as much of a long one as stands around the match. */
function excerpt(content: string, at: number): string {
  if (content.length <= MAX_TEXT_CHARACTERS) return content
  const start = Math.max(0, Math.min(at - 100, content.length - MAX_TEXT_CHARACTERS))
  const end = start + MAX_TEXT_CHARACTERS
  return `${start > 0 ? '…' : ''}${content.slice(start, end)}${end < content.length ? '…' : ''}`
}
