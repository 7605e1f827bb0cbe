import type { Dirent } from 'node:fs'
import { inWorkspace, type OpenFolder } from './workspace-path.js'

export interface WalkOptions {
  workspace: string
  path: string
  /** How many levels deep; 1 is the folder itself. */
  depth: number
  ignoredFolders: ReadonlySet<string>
  signal: AbortSignal
}

export interface WalkEntry {
  /** From the workspace. */
  path: string
  name: string
  kind: 'folder' | 'file' | 'link' | 'other'
  /** The open folder that it is in; closed when the walk leaves it. */
  folder: OpenFolder
}

/**
 * Everything below a folder, sorted by name, each folder before its contents. Links are reported and never followed,
 * so the walk neither leaves the workspace nor loops.
 */
export async function* walkFolder(options: WalkOptions): AsyncGenerator<WalkEntry, void, undefined> {
  const { names, folder } = await openAt(options)
  yield* walk(folder, names, options.depth, options)
}

/** Opens the folder again, because a generator outlives the call that finds it. */
async function openAt({ workspace, path }: WalkOptions) {
  return inWorkspace(workspace, path, async ({ parent, name, path: found }) => ({
    folder: await parent.folder(name),
    names: found === '.' ? '' : `${found}/`,
  }))
}

async function* walk(
  folder: OpenFolder,
  prefix: string,
  depth: number,
  options: WalkOptions,
): AsyncGenerator<WalkEntry, void, undefined> {
  try {
    const entries = (await folder.entries()).sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      options.signal.throwIfAborted()
      const { name } = entry
      const path = prefix + name
      const kind = kindOf(entry)
      yield { path, name, kind, folder }
      if (kind !== 'folder' || depth === 1 || options.ignoredFolders.has(name)) continue
      const child = await openOrSkip(folder, name)
      if (child) yield* walk(child, `${path}/`, depth - 1, options)
    }
  } finally {
    await folder.close()
  }
}

/** A folder that was removed, became a link or is not readable is skipped. */
async function openOrSkip(folder: OpenFolder, name: string): Promise<OpenFolder | undefined> {
  try {
    return await folder.folder(name)
  } catch {
    return undefined
  }
}

function kindOf(entry: Dirent): WalkEntry['kind'] {
  if (entry.isDirectory()) return 'folder'
  if (entry.isFile()) return 'file'
  return entry.isSymbolicLink() ? 'link' : 'other'
}
