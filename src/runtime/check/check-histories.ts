/** The verdicts over the histories of files, whichever program wrote them. `lango lint` and the page share it. */
import { atOnce, type Steps } from '../../base/pause.js'
import type { FileHistory, HistoryFile } from '../../formats/history-files.js'
import { lintHistory } from '../../provider/repair/lint-history.js'
import { resolveProfile } from '../../provider/repair/profile.js'
import { PROFILE_FACTS, STRICT_PROFILES } from '../../testing/strict/profile.js'
import type { ProfileLint, SessionFinding } from '../info.js'
import { linting, summarize } from '../lint.js'
import { lintRequest } from './lint-request.js'
import { lintSequence } from './lint-sequence.js'

/** The verdict over one history. */
export interface CheckedHistory {
  name: string
  messages: number
  profiles: ProfileLint[]
  /** What of the file is not among the messages. */
  notes: readonly string[]
  /** Older messages that were not checked. */
  skipped?: number
  whereOf: (finding: SessionFinding) => string
}

/** A file that was read, and the verdicts over its histories. */
export interface CheckedFile {
  read: HistoryFile
  checked: CheckedHistory[]
}

/** Checks the histories of a file. `profiles` are those that were asked for; by default those that the file is for. */
export function checkHistories(read: HistoryFile, profiles?: readonly string[]): CheckedFile {
  return atOnce(checking(read, profiles))
}

/** The work of `checkHistories` in steps, so that other work can run between them. */
export function* checking(read: HistoryFile, profiles?: readonly string[]): Steps<CheckedFile> {
  // A profile that is asked for by name is meant as its server; all of them are not.
  const own = profiles?.length === 1 ? wireProfiles(read) : read.profiles
  const checked: CheckedHistory[] = []
  for (const history of read.histories) checked.push(yield* check(history, profiles ?? read.profiles, own))
  return { read, checked }
}

/** Requests that were given together are one conversation: each is compared with the one before it. */
export function compareRequests(files: readonly CheckedFile[]): void {
  const requests = files.flatMap(({ read, checked }) =>
    read.histories.flatMap((history, index) => {
      const verdict = checked[index]
      return history.kind === 'request' && verdict ? [{ history, verdict }] : []
    }),
  )
  if (requests.length < 2) return
  const names = new Set(requests.flatMap(({ verdict }) => verdict.profiles.map(({ profile }) => profile)))
  for (const name of names) {
    const verdicts = lintSequence(
      requests.map(({ history }) => history),
      resolveProfile(name),
    )
    for (const [index, { verdict }] of requests.entries()) {
      const { findings = [], notes = [] } = verdicts[index] ?? {}
      verdict.notes = [...new Set([...verdict.notes, ...notes])]
      verdict.profiles = verdict.profiles.map(one =>
        one.profile === name && findings.length > 0 ? summarize(name, [...findings, ...one.findings]) : one,
      )
    }
  }
}

/** The suggested names of repaired files: a request stays one, any other history becomes a Lango export. */
export const HEALED_NAMES = { request: 'healed.json', export: 'healed.jsonl' } as const

/** The place of a finding in a stored session. */
export function inSession({ seq, at }: SessionFinding): string {
  return `Message ${seq ?? at + 1}`
}

/** The profiles of the wire that a request was written for. */
export function wireProfiles({ candidates }: Pick<HistoryFile, 'candidates'>): string[] {
  const families: readonly string[] = candidates
  return STRICT_PROFILES.filter(profile => families.includes(PROFILE_FACTS[profile].family))
}

/** Programs store results in a form of their own and write the wire's when they send: no fault of a transcript. */
const OWN_FORM = 'result-form'

function* check(
  history: FileHistory,
  profiles: readonly string[],
  own: readonly string[],
): Steps<CheckedHistory> {
  const { name } = history
  if (history.kind === 'session') {
    const { messages } = history
    const verdicts = yield* linting(messages, profiles)
    return { name, messages: messages.length, notes: [], profiles: verdicts, whereOf: inSession }
  }
  const { messages, notes, kind } = history
  const verdicts: ProfileLint[] = []
  for (const profile of profiles) {
    yield
    const resolved = resolveProfile(profile)
    // A transcript is judged as if a user message followed, a request as it is.
    const next = kind === 'transcript' ? 'user' : 'none'
    const isOwn = history.kind === 'request' && own.includes(resolved.name)
    verdicts.push(
      isOwn
        ? lintRequest(history, resolved)
        : summarize(
            resolved.name,
            lintHistory(messages, resolved, { next }).filter(
              ({ code }) => kind === 'request' || code !== OWN_FORM,
            ),
          ),
    )
  }
  return {
    name,
    messages: messages.length,
    notes,
    profiles: verdicts,
    whereOf: ({ at }) => messages[at]?.place ?? `message ${at + 1}`,
  }
}
