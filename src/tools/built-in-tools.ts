import { z } from 'zod'
import { AgentError } from '../errors.js'
import { defineTool, type Tool } from '../tool.js'
import { type FetchUrlOptions, fetchUrlTool } from './fetch-url.js'
import { listFilesTool } from './list-files.js'
import { readFileTool } from './read-file.js'
import { runCommandTool } from './run-command.js'
import type { SandboxMode } from './sandbox.js'
import { searchFilesTool } from './search-files.js'
import { BUILT_IN_TOOL_NAMES, type BuiltInToolName } from './tool-names.js'
import type { TextFiles } from './workspace-path.js'
import { editFileTool, writeFileTool } from './write-file.js'

export interface BuiltInToolOptions {
  /** The folder that file tools and commands are restricted to. */
  workspace: string
  /** Addresses outside the public internet for `fetch_url`: none (the default), all, or a list. */
  allowPrivateNetwork?: FetchUrlOptions['allowPrivateNetwork']
  /** Default 120,000. */
  commandTimeoutMs?: number | undefined
  /** Added to the environment of commands, which contains none of this process's keys. */
  env?: Readonly<Record<string, string>> | undefined
  /** Default `auto`: commands run in a sandbox where one is available. */
  sandbox?: SandboxMode | undefined
  /** Who holds text files open. Default: nobody, they are read from the disk and written to it. */
  files?: TextFiles | undefined
  /** Which tools require approval. Default: `write_file`, `edit_file` and `run_command`. */
  needsApproval?: Readonly<Partial<Record<BuiltInToolName, boolean>>> | undefined
}

const MAKERS: Readonly<
  Record<BuiltInToolName, (options: Omit<BuiltInToolOptions, 'needsApproval'>) => Tool>
> = {
  read_file: readFileTool,
  list_files: listFilesTool,
  search_files: searchFilesTool,
  write_file: writeFileTool,
  edit_file: editFileTool,
  run_command: ({ workspace, commandTimeoutMs, env, sandbox }) =>
    runCommandTool({ workspace, timeoutMs: commandTimeoutMs, env, sandbox }),
  fetch_url: ({ allowPrivateNetwork }) => fetchUrlTool({ allowPrivateNetwork }),
  current_time: () => currentTimeTool(),
}

/** The tools with these names. */
export function builtInTools(names: readonly string[], options: BuiltInToolOptions): Tool[] {
  return [...new Set(names)].map(name => {
    if (!isBuiltIn(name)) {
      throw new AgentError(
        'invalid-config',
        `Unknown built-in tool "${name}". Known tools: ${BUILT_IN_TOOL_NAMES.join(', ')}.`,
        { details: { name } },
      )
    }
    const { needsApproval, ...rest } = options
    const tool = MAKERS[name](rest)
    const asks = needsApproval?.[name]
    if (asks === undefined) return tool
    // A tool that asks by default may say why.
    return { ...tool, needsApproval: asks && (tool.needsApproval || true) }
  })
}

function isBuiltIn(name: string): name is BuiltInToolName {
  return Object.hasOwn(MAKERS, name)
}

/** Returns the time. `now` is the clock. */
function currentTimeTool({ now = Date.now }: { now?: () => number } = {}): Tool {
  return defineTool({
    name: 'current_time',
    description: 'Returns the current date and time, in UTC and in a time zone.',
    parameters: z.object({
      time_zone: z.string().optional().describe('Such as "Asia/Seoul". Default: that of this machine.'),
    }),
    effect: 'read',
    execute: ({ time_zone }) => {
      const date = new Date(now())
      const local = formatter(time_zone)
      return {
        utc: date.toISOString(),
        local: local.format(date),
        timeZone: local.resolvedOptions().timeZone,
      }
    },
  })
}

function formatter(timeZone: string | undefined): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-GB', {
      dateStyle: 'full',
      timeStyle: 'long',
      ...(timeZone ? { timeZone } : {}),
    })
  } catch (error) {
    const message = `"${timeZone}" is not a time zone. Use a name such as "Europe/Berlin".`
    throw new AgentError('invalid-argument', message, { cause: error })
  }
}
