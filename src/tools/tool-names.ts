/** The names of the built-in tools. Imports nothing, so that configuration and commands know them without the tools. */

export const BUILT_IN_TOOL_NAMES = [
  'read_file',
  'list_files',
  'search_files',
  'write_file',
  'edit_file',
  'run_command',
  'fetch_url',
  'current_time',
] as const

export type BuiltInToolName = (typeof BUILT_IN_TOOL_NAMES)[number]

/** Those that only read, and only inside the workspace. */
export const READING_TOOL_NAMES: readonly BuiltInToolName[] = [
  'read_file',
  'list_files',
  'search_files',
  'current_time',
]
