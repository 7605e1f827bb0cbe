/** A pasted history: what it is, what providers reject in it and why, and the healed file. Nothing is stored or sent. */
import { inSlices, letOthersRun } from '../../base/pause.js'
import { AgentError } from '../../errors.js'
import { FORMAT_NAMES, type HistoryFile, readHistoryText, refuseEmpty } from '../../formats/history-files.js'
import type { HistoryFormat } from '../../formats/recognize.js'
import type { ProfileLint } from '../info.js'
import { type CheckedHistory, checking, compareRequests } from './check-histories.js'
import { type HealedFile, healedFile, profilesToHealFor } from './healed-file.js'
import { type Problem, problemsOf } from './problems.js'

export interface CheckedText {
  /** Absent when it is not sure. */
  format?: FormatName
  /** All formats that the text fits. When they read it differently, there are no histories: choose one. */
  candidates: FormatName[]
  histories: CheckedTextHistory[]
  /** How many more histories the text holds than were checked. */
  more: number
}

export interface FormatName {
  format: string
  name: string
}

export interface CheckedTextHistory {
  name: string
  messages: number
  notes: readonly string[]
  profiles: Omit<ProfileLint, 'findings'>[]
  /** At most 100; `moreProblems` counts the others. */
  problems: Problem[]
  moreProblems: number
  healed?: HealedFile
}

const MOST_HISTORIES = 20
const MOST_PROBLEMS = 100

/** Checks a text of any format that Lango reads. Throws `invalid-argument` when it is none. */
export async function checkText(text: string, format?: string): Promise<CheckedText> {
  const read = await readOrAsk(text, format)
  const some = { ...read, histories: read.histories.slice(0, MOST_HISTORIES) }
  await letOthersRun()
  const file = await inSlices(checking(some))
  compareRequests([file])
  const histories: CheckedTextHistory[] = []
  for (const [index, checked] of file.checked.entries()) {
    await letOthersRun()
    histories.push(await answerOf(checked, some, index))
  }
  return {
    ...(read.format === undefined ? {} : { format: named(read.format) }),
    candidates: read.candidates.map(named),
    histories,
    more: read.histories.length - some.histories.length,
  }
}

/** A text that several formats read differently is no error here: the reader is asked which one it is. */
async function readOrAsk(text: string, format: string | undefined): Promise<HistoryFile> {
  try {
    const read = await readHistoryText(text, 'The text', format)
    refuseEmpty(read, 'The text')
    return read
  } catch (error) {
    const candidates = error instanceof AgentError ? error.details?.candidates : undefined
    if (!Array.isArray(candidates)) throw error
    return { candidates, histories: [], profiles: [] }
  }
}

async function answerOf(
  checked: CheckedHistory,
  read: HistoryFile,
  index: number,
): Promise<CheckedTextHistory> {
  const { name, messages, notes, profiles, whereOf } = checked
  const problems = problemsOf(profiles, whereOf)
  const history = read.histories[index]
  const healFor = profilesToHealFor(profiles, read)
  return {
    name,
    messages,
    notes,
    profiles: profiles.map(({ findings: _findings, ...verdict }) => verdict),
    problems: problems.slice(0, MOST_PROBLEMS),
    moreProblems: Math.max(0, problems.length - MOST_PROBLEMS),
    ...(history && problems.length > 0 ? { healed: await healedFile(history, healFor) } : {}),
  }
}

function named(format: HistoryFormat): FormatName {
  return { format, name: FORMAT_NAMES[format] }
}
