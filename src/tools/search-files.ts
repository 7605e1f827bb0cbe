import vm from 'node:vm'
import { z } from 'zod'
import { AgentError, messageOf } from '../errors.js'
import { defineTool, type Tool } from '../tool.js'
import { isBinary } from './binary-content.js'
import { IGNORED_FOLDERS } from './list-files.js'
import { type WalkEntry, walkFolder } from './walk-folder.js'

/** Finds lines in the files of the workspace. */
export function searchFilesTool({ workspace }: { workspace: string }): Tool {
  return defineTool({
    name: 'search_files',
    description:
      'Finds lines in the text files of the workspace, by text or by regular expression (JavaScript).',
    parameters: z.object({
      query: z.string().min(1).max(1_000).describe('What to find within a line.'),
      regex: z.boolean().default(false).describe('Whether the query is a regular expression.'),
      case_sensitive: z.boolean().default(true),
      path: z.string().min(1).default('.').describe('The folder to search, relative to the workspace.'),
      name_ends_with: z.string().optional().describe('Only files whose name ends so, such as ".ts".'),
      max_matches: z.int().min(1).max(MAX_MATCHES).default(100),
    }),
    effect: 'read',
    execute: async (args, { signal }) => {
      const find = lineMatcher(args)
      const search = new Search(args.max_matches, find)
      const options = {
        workspace,
        path: args.path,
        depth: MAX_DEPTH,
        signal,
        ignoredFolders: IGNORED_FOLDERS,
      }
      for await (const entry of walkFolder(options)) {
        if (entry.kind !== 'file' || !entry.name.endsWith(args.name_ends_with ?? '')) continue
        if (!(await search.visit(entry))) break
      }
      return search.result()
    },
  })
}

const MAX_DEPTH = 50
const MAX_MATCHES = 200
const MAX_FILES = 20_000
const MAX_FILE_BYTES = 4_000_000
const MAX_TOTAL_BYTES = 200_000_000

/** The state of one search: the matches and how much was read. */
class Search {
  readonly #matches: { path: string; line: number; text: string }[] = []
  #files = 0
  #skipped = 0
  #bytes = 0
  #limit: string | undefined

  readonly #maxMatches: number
  readonly #find: (text: string, limit: number) => LineMatch[]

  constructor(maxMatches: number, find: (text: string, limit: number) => LineMatch[]) {
    this.#maxMatches = maxMatches
    this.#find = find
  }

  /** Searches one file. False when a limit is reached. */
  async visit(entry: WalkEntry): Promise<boolean> {
    if (this.#files >= MAX_FILES || this.#bytes >= MAX_TOTAL_BYTES) {
      this.#limit = `Not everything was searched: the limit is ${MAX_FILES} files or ${MAX_TOTAL_BYTES} bytes.`
      return false
    }
    this.#files++
    const text = await readText(entry)
    if (text === undefined) {
      this.#skipped++
      return true
    }
    this.#bytes += text.length
    // One more than requested shows whether there are more.
    for (const match of this.#find(text, this.#maxMatches - this.#matches.length + 1)) {
      if (this.#matches.length === this.#maxMatches) {
        this.#limit = `There are more: only the first ${this.#maxMatches} matches are listed.`
        return false
      }
      this.#matches.push({ path: entry.path, ...match })
    }
    return true
  }

  result() {
    return {
      matches: this.#matches,
      filesSearched: this.#files - this.#skipped,
      ...(this.#skipped > 0 ? { filesSkipped: this.#skipped } : {}),
      ...(this.#limit ? { note: this.#limit } : {}),
    }
  }
}

/** `undefined` for what is not text, too large, or cannot be opened. */
async function readText({ folder, name }: WalkEntry): Promise<string | undefined> {
  try {
    const handle = await folder.file(name)
    try {
      if ((await handle.stat()).size > MAX_FILE_BYTES) return undefined
      const content = await handle.readFile()
      return isBinary(content.subarray(0, 8_192)) ? undefined : content.toString('utf8')
    } finally {
      await handle.close()
    }
  } catch {
    return undefined
  }
}

interface LineMatch {
  /** 1 is the first. */
  line: number
  text: string
}

interface LineQuery {
  query: string
  regex: boolean
  case_sensitive: boolean
}

/**
 * Finds the matching lines of a text. A regular expression of a model may backtrack without end and would block the
 * event loop, so it runs where it can be interrupted.
 */
function lineMatcher(query: LineQuery): (text: string, limit: number) => LineMatch[] {
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
        `The pattern ${query.query} takes too long to match. Simplify it: avoid nested repetitions.`,
        { cause: error },
      )
    }
  }
}

/** Shorter than the timers that must not be delayed. */
const MATCH_TIMEOUT_MS = 500
const MAX_TEXT_CHARACTERS = 300

function patternOf({ query, regex, case_sensitive }: LineQuery): RegExp {
  const flags = case_sensitive ? 'u' : 'iu'
  if (!regex) return new RegExp(query.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), flags)
  try {
    return new RegExp(query, flags)
  } catch (error) {
    // Without the u flag JavaScript accepts unnecessary backslashes, which other languages allow.
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

/** The line, or the part of a long one around the match. */
function excerpt(content: string, at: number): string {
  if (content.length <= MAX_TEXT_CHARACTERS) return content
  const start = Math.max(0, Math.min(at - 100, content.length - MAX_TEXT_CHARACTERS))
  const end = start + MAX_TEXT_CHARACTERS
  return `${start > 0 ? '…' : ''}${content.slice(start, end)}${end < content.length ? '…' : ''}`
}
