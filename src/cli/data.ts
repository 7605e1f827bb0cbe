/** `lango erase`, `lango backup` and `lango restore`: the data of a store as a whole. */

import { AgentError } from '../errors.js'
import type { EraseReceipt } from '../session/session-store.js'
import { backupStore, parseStoreUrl, restoreStore } from '../store/open-store.js'
import { ask, canAsk } from './ask.js'
import type { Flags } from './command.js'
import { type Io, type OutputStream, pathOf } from './io.js'
import { quoted } from './next-command.js'
import { storeSettings, withStore } from './open-command-store.js'
import { note, print, printJson } from './output.js'
import { plainLine } from './plain-text.js'
import { count, grouped } from './wording.js'

/** `lango erase`. */
export async function eraseUser(io: Io, flags: Flags): Promise<number> {
  const userId = flags.user
  if (userId === undefined) throw refused('Pass --user with the id of the user whose data is to be erased.')
  requireAnswer(io, flags, 'Erasing cannot be undone')
  return withStore(io, flags, async ({ store, app }) => {
    const question = `Permanently erase all data of the user "${plainLine(userId)}" in the app "${plainLine(app)}"? [y/N] `
    if (!(await isConfirmed(io, flags, question))) {
      note(io, 'Nothing was erased.')
      return 1
    }
    const receipt = await store.erase({ appName: app, userId }, { rewrite: flags.rewrite === true })
    if (flags.json) await printJson(io, receipt)
    else await print(io, `${receiptText(receipt)}\n`)
    return 0
  })
}

function receiptText(receipt: EraseReceipt): string {
  const { sessions, messages, runs, events, requests, signals, stateKeys, at, residue } = receipt
  const parts = [
    count(sessions, 'session'),
    count(messages, 'message'),
    count(runs, 'run'),
    count(events, 'run event'),
    count(requests, 'request'),
    count(signals, 'signal'),
    count(stateKeys, 'state key'),
  ]
  return `Erased at ${new Date(at).toISOString()}: ${parts.join(', ')}.\n${RESIDUE[residue]}`
}

const RESIDUE: Readonly<Record<EraseReceipt['residue'], string>> = {
  none: 'The database files contain none of the deleted bytes. Backups are not changed.',
  'free-space':
    'Deleted bytes may remain in free space of the files until they are overwritten; --rewrite removes them. Backups are not changed.',
  log: 'Deleted bytes may remain in the write-ahead log until it is recycled. Backups are not changed.',
}

/** `lango backup`. */
export async function backUp(io: Io, [file = '']: readonly string[], flags: Flags): Promise<number> {
  const { store } = await storeSettings(io, flags)
  const location = parseStoreUrl(store)
  if (location.driver === 'postgres') {
    const line = `pg_dump --format=custom --file=${quoted(file)} ${quoted(withoutPassword(location.connectionString))}`
    return printServerCommand(io, line, flags)
  }
  const progress = new Progress(io, 'Copied', flags)
  const receipt = await backupStore(store, pathOf(io, file), {
    overwrite: flags.force === true,
    onProgress: ({ donePages, totalPages }) => progress.show(donePages, totalPages),
  })
  progress.end()
  if (flags.json) await printJson(io, receipt)
  else {
    const content = `${count(receipt.sessions, 'session')} and ${count(receipt.messages, 'message')}`
    await print(io, `Backed up ${content} to ${receipt.path} (${grouped(receipt.bytes)} bytes), checked.\n`)
  }
  return 0
}

/** `lango restore`. */
export async function restore(io: Io, [file = '']: readonly string[], flags: Flags): Promise<number> {
  const { store } = await storeSettings(io, flags)
  const location = parseStoreUrl(store)
  if (location.driver === 'postgres') {
    const target = quoted(withoutPassword(location.connectionString))
    const line = `pg_restore --clean --if-exists --single-transaction --dbname=${target} ${quoted(file)}`
    return printServerCommand(io, line, flags)
  }
  if (location.driver === 'memory')
    throw refused('A store in memory cannot be restored: name one with --store.')
  requireAnswer(io, flags, 'Restoring replaces the database')
  const question = `Replace the database ${plainLine(location.path)} with ${plainLine(file)}? The current file is kept. [y/N] `
  if (!(await isConfirmed(io, flags, question))) {
    note(io, 'Nothing was restored.')
    return 1
  }
  const progress = new Progress(io, 'Copied', flags)
  const receipt = await restoreStore(store, pathOf(io, file), ({ doneBytes, totalBytes }) =>
    progress.show(doneBytes, totalBytes),
  )
  progress.end()
  if (flags.json) await printJson(io, receipt)
  else {
    const content = `${count(receipt.sessions, 'session')} and ${count(receipt.messages, 'message')}`
    await print(io, `Restored ${content} to ${receipt.path}, checked.\n`)
    if (receipt.kept !== undefined) await print(io, `The previous database was kept as ${receipt.kept}.\n`)
  }
  return 0
}

/** PostgreSQL has tools of its own; nothing was copied, and the exit code says so. */
async function printServerCommand(io: Io, line: string, flags: Flags): Promise<number> {
  if (flags.json) await printJson(io, { command: line })
  else await print(io, `${line}\n`)
  note(
    io,
    'lango: Use PostgreSQL’s own tools for this database. Run the command above; the password is read from PGPASSWORD or ~/.pgpass.',
  )
  return SERVER_TOOL
}

const SERVER_TOOL = 3

function withoutPassword(url: string): string {
  const shown = new URL(url)
  shown.password = ''
  return shown.href
}

function requireAnswer(io: Io, flags: Flags, why: string): void {
  if (flags.yes === true || (flags.json !== true && canAsk(io))) return
  throw refused(`${why}, and there is no terminal for the confirmation prompt. Pass --yes to confirm.`)
}

async function isConfirmed(io: Io, flags: Flags, question: string): Promise<boolean> {
  if (flags.yes === true) return true
  const answer = await ask(io, question)
  return answer === 'y' || answer === 'yes'
}

/** Progress on standard error: one line that changes on a terminal, a line per quarter elsewhere. */
class Progress {
  readonly #stream: OutputStream
  readonly #what: string
  readonly #isSilent: boolean
  #last = -1

  constructor({ stderr }: Io, what: string, flags: Flags) {
    this.#stream = stderr
    this.#what = what
    this.#isSilent = flags.quiet === true
  }

  show(done: number, total: number): void {
    const { isTTY } = this.#stream
    const step = isTTY ? 1 : 25
    const percent = total === 0 ? 100 : Math.floor((done / total) * (100 / step)) * step
    if (this.#isSilent || percent === this.#last) return
    this.#last = percent
    this.#stream.write(isTTY ? `\r${this.#what} ${percent} %` : `${this.#what} ${percent} %\n`)
  }

  end(): void {
    if (this.#stream.isTTY && this.#last >= 0) this.#stream.write('\n')
  }
}

function refused(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
