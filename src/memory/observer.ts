/** Who observes: rules, or a model. */
import type { Observed } from '../session/session-memory.js'
import { dateWords } from './index-session.js'
import { termsOf } from './terms.js'

/** The line with its words for the index. */
export function withTerms(line: Observed): Observed {
  return { ...line, terms: termsOf(`${line.text} ${dateWords(line.time)}`) }
}
