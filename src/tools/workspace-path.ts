/**
 * Restricts file access to one folder, for any path, even when the folder is changed concurrently.
 *
 * 1. A path is resolved by its text: `..` and absolute paths that leave the workspace are refused.
 * 2. Links in it are resolved by the system (`realpath`): a link that leads outside is refused.
 * 3. What was resolved is then walked from the workspace down, each folder opened beneath the one before it
 *    and no link followed. A folder that is replaced by a link after step 2 makes the walk fail.
 *
 * Step 3 needs a way to open a name beneath an open folder. Linux has one in `/proc/self/fd`. Elsewhere the
 * real path is checked again after opening; only a folder that is swapped twice in that time is not detected.
 */

import { constants, type Dirent, existsSync } from 'node:fs'
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  stat,
  unlink,
} from 'node:fs/promises'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { own } from '../base/own.js'
import { AgentError } from '../errors.js'
import type { ToolContext } from '../tool.js'

/** A folder by its handle: it stays the same folder while it is open, even when it is renamed. */
export class OpenFolder {
  /** The real path at the time of opening. */
  readonly path: string
  readonly #handle: FileHandle
  readonly #hasDescriptorPaths: boolean

  private constructor(handle: FileHandle, path: string, hasDescriptorPaths: boolean) {
    this.#handle = handle
    this.path = path
    this.#hasDescriptorPaths = hasDescriptorPaths
  }

  /** The workspace itself. Its own path may contain links: it is the owner's choice. */
  static async root(workspace: string, hasDescriptorPaths = HAS_DESCRIPTOR_PATHS): Promise<OpenFolder> {
    const path = await realpath(workspace).catch(error => {
      throw refusal(`Cannot open the workspace "${workspace}": ${reasonOf(error)}.`)
    })
    const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
    return new OpenFolder(handle, path, hasDescriptorPaths)
  }

  /** A folder in this folder, never through a link. */
  async folder(name: string): Promise<OpenFolder> {
    const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
    const handle = await this.#open(name, flags)
    return new OpenFolder(handle, join(this.path, name), this.#hasDescriptorPaths)
  }

  /** A plain file in this folder, never through a link. Pipes and devices, which could block, are refused. */
  async file(name: string, flags: number = constants.O_RDONLY): Promise<FileHandle> {
    const handle = await this.#open(name, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const facts = await handle.stat()
    if (facts.isFile()) return handle
    await handle.close()
    throw refusal(`"${name}" is ${facts.isDirectory() ? 'a folder, not a file' : 'not a plain file'}.`)
  }

  entries(): Promise<Dirent[]> {
    return readdir(this.#at('.'), { withFileTypes: true })
  }

  facts(name: string) {
    return lstat(this.#at(name))
  }

  async makeFolder(name: string): Promise<OpenFolder> {
    await mkdir(this.#at(name)).catch(error => {
      if (codeOf(error) !== 'EEXIST') throw error
    })
    return this.folder(name)
  }

  /** Gives a file of this folder another name, replacing what has it. A link is replaced, not followed. */
  async rename(from: string, to: string): Promise<void> {
    await this.#unmoved()
    await rename(this.#at(from), this.#at(to))
  }

  async remove(name: string): Promise<void> {
    await this.#unmoved()
    await unlink(this.#at(name))
  }

  close(): Promise<void> {
    return this.#handle.close()
  }

  async #open(name: string, flags: number): Promise<FileHandle> {
    await this.#unmoved()
    const handle = await open(this.#at(name), flags, 0o666)
    if (this.#hasDescriptorPaths) return handle
    if (await isAt(handle, join(this.path, name))) return handle
    await handle.close()
    throw refusal(`"${name}" was replaced while it was opened.`)
  }

  /** Where names are bound to paths, the path must still lead to this very folder. */
  async #unmoved(): Promise<void> {
    if (this.#hasDescriptorPaths || (await isAt(this.#handle, this.path))) return
    throw refusal(`The folder "${this.path}" was replaced while it was used.`)
  }

  #at(name: string): string {
    return this.#hasDescriptorPaths ? `/proc/self/fd/${this.#handle.fd}/${name}` : join(this.path, name)
  }
}

/** Text files that another program holds open, such as an editor with changes that are not saved. */
export interface TextFiles {
  /** The current text of a file, by its absolute path. `undefined`: it is read from the disk. */
  read(path: string, context: ToolContext): Promise<string | undefined>
  /** Replaces the text of a file. `false`: it is written to the disk. */
  write(path: string, text: string, context: ToolContext): Promise<boolean>
}

/** A file or folder of the workspace by its open parent, its name there, and its path from the workspace. */
export interface Located {
  readonly parent: OpenFolder
  /** `.` for the workspace itself. */
  readonly name: string
  /** From the workspace, with `/` between names, as models see it. */
  readonly path: string
}

/** Finds a path and runs `use` on it while its parent is open. With `create`, missing folders are made. */
export async function inWorkspace<Result>(
  workspace: string,
  path: string,
  use: (found: Located) => Promise<Result>,
  { create = false, hasDescriptorPaths = HAS_DESCRIPTOR_PATHS }: LocateOptions = {},
): Promise<Result> {
  const root = await OpenFolder.root(workspace, hasDescriptorPaths)
  let parent = root
  try {
    const names = await realNames(root.path, resolve(workspace), path)
    for (const name of names.slice(0, -1)) {
      const next = create ? await parent.makeFolder(name) : await parent.folder(name)
      if (parent !== root) await parent.close()
      parent = next
    }
    return await use({ parent, name: names.at(-1) ?? '.', path: names.join('/') || '.' })
  } catch (error) {
    throw asRefusal(error, path)
  } finally {
    if (parent !== root) await parent.close()
    await root.close()
  }
}

export interface LocateOptions {
  create?: boolean
  /** Whether names can be opened beneath an open folder. Default: on Linux. */
  hasDescriptorPaths?: boolean
}

/** The names that lead from the workspace to the real place of a path, which need not exist yet. */
async function realNames(root: string, asGiven: string, path: string): Promise<string[]> {
  if (path.includes('\0')) throw refusal('A path cannot contain a NUL character.')
  // The workspace may be given by a path with links in it; a path that starts with it means the same place.
  const inside = isAbsolute(path) && isWithin(asGiven, path) ? relative(asGiven, path) : path
  const wanted = resolve(root, inside)
  if (!isWithin(root, wanted)) throw outside(path)
  const real = await realPlace(wanted)
  if (!isWithin(root, real)) throw outside(path)
  return relative(root, real)
    .split(sep)
    .filter(name => name !== '')
}

/** The real path of the existing part of a path, followed by the rest. */
async function realPlace(path: string): Promise<string> {
  const missing: string[] = []
  for (let place = path; ; place = resolve(place, '..')) {
    try {
      return join(await realpath(place), ...missing)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error
      // A dangling link exists, and creating its target would follow it.
      if (await isLink(place)) throw refusal(`"${path}" leads through a link to nowhere.`)
      missing.unshift(relative(resolve(place, '..'), place))
    }
  }
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink()
  } catch {
    return false
  }
}

function isWithin(root: string, path: string): boolean {
  const way = relative(root, resolve(path))
  return way === '' || !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way))
}

async function isAt(handle: FileHandle, path: string): Promise<boolean> {
  const [opened, named, real] = await Promise.all([
    handle.stat(),
    stat(path).catch(() => undefined),
    realpath(path).catch(() => ''),
  ])
  return named !== undefined && opened.dev === named.dev && opened.ino === named.ino && real === path
}

const HAS_DESCRIPTOR_PATHS = process.platform === 'linux' && existsSync('/proc/self/fd')

function outside(path: string): AgentError {
  return refusal(`"${path}" is outside the workspace. Use a path inside it, relative to its top.`)
}

/** The system's error for a path, without its text: that may name an internal path. */
function asRefusal(error: unknown, path: string): unknown {
  if (codeOf(error) === undefined) return error
  return refusal(`"${path}": ${reasonOf(error)}.`, error)
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder, not a file',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
  ELOOP: 'it is a link, or became one during the call',
  ENAMETOOLONG: 'the name is too long',
  ENXIO: 'it is not a plain file',
  ENOSPC: 'the disk is full',
}

function reasonOf(error: unknown): string {
  const code = codeOf(error) ?? ''
  return own(REASONS, code) ?? (code || String(error))
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  // Lango's own errors have codes, too, in lower case.
  return typeof code === 'string' && code === code.toUpperCase() ? code : undefined
}

function refusal(message: string, cause?: unknown): AgentError {
  return new AgentError('invalid-argument', message, { cause })
}
