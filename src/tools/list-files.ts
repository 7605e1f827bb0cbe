import { z } from 'zod'
import { defineTool, type Tool } from '../tool.js'
import { walkFolder } from './walk-folder.js'

/** Lists what is in a folder of the workspace. */
export function listFilesTool({ workspace }: { workspace: string }): Tool {
  return defineTool({
    name: 'list_files',
    description: `Lists files and folders of the workspace, folders with a slash at the end. Leaves out what is in ${[...IGNORED_FOLDERS].join(', ')}, and does not follow links.`,
    parameters: z.object({
      path: z.string().min(1).default('.').describe('The folder, relative to the workspace.'),
      depth: z.int().min(1).max(MAX_DEPTH).default(2).describe('How many levels deep.'),
      max_entries: z.int().min(1).max(MAX_ENTRIES).default(500),
    }),
    effect: 'read',
    execute: async ({ path, depth, max_entries }, { signal }) => {
      const entries: string[] = []
      const options = { workspace, path, depth, signal, ignoredFolders: IGNORED_FOLDERS }
      for await (const entry of walkFolder(options)) {
        if (entries.length === max_entries) {
          return { entries, note: `More entries exist: only the first ${max_entries} are listed.` }
        }
        entries.push(entry.path + SUFFIXES[entry.kind])
      }
      return { entries }
    },
  })
}

const MAX_DEPTH = 20
const MAX_ENTRIES = 2_000
const SUFFIXES = { folder: '/', file: '', link: ' (link)', other: ' (not a plain file)' }

/** Folders of generated or installed files. */
export const IGNORED_FOLDERS: ReadonlySet<string> = new Set(['node_modules', '.git'])
