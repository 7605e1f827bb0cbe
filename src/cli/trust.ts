/** `lango trust`: shows what a folder would do, asks, and stores the answer; lists and removes trusted folders. */
import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { changeTrust, readTrust, trustFile } from '../config/trust-record.js'
import { AgentError } from '../errors.js'
import { ask, canAsk } from './ask.js'
import type { Flags } from './command.js'
import { note, print, printJson } from './output.js'
import { plainLine } from './plain-text.js'
import { needsText, remember, untrustedNeeds } from './settle-trust.js'

/** Trusts a folder after showing what it would do. */
export async function trust([folder = '.']: readonly string[], flags: Flags): Promise<number> {
  if (flags.list && flags.forget) throw invalid('--list and --forget cannot be combined.')
  if (flags.list) return list(flags)
  if (flags.forget) return forget(realOf(folder))
  if (!existsSync(folder)) throw invalid(`Folder ${folder} does not exist. Check the path.`)
  const named = {
    config: flags.config === undefined ? undefined : resolve(flags.config),
    agent: flags.agent === undefined ? undefined : resolve(flags.agent),
  }
  const { needs, record } = await untrustedNeeds(named, realOf(folder))
  if (needs.length === 0) {
    await print('Nothing to trust: all settings are harmless or already trusted.\n')
    return 0
  }
  await print(`${needsText(needs, record)}\n`)
  if (!flags.yes) {
    if (!canAsk())
      throw invalid('Not trusted: there is no terminal to ask on. Review the list and pass --yes.')
    if (!(await ask('Trust it? [y/N]: ')).startsWith('y')) {
      note('Not trusted.')
      return 1
    }
  }
  await remember(needs)
  for (const each of needs)
    await print(`${plainLine(each.folder)} is trusted until one of these files changes.\n`)
  return 0
}

async function list({ json }: Flags): Promise<number> {
  const file = trustFile(process.env)
  const { folders, problem } = await readTrust(file)
  if (problem !== undefined) throw invalid(`${file} cannot be read (${problem}); no folder is trusted.`)
  const trusted = [...folders].map(([folder, entry]) => ({ folder, ...entry }))
  if (json) await printJson({ file, folders: trusted })
  else if (trusted.length === 0) note('No folder is trusted.')
  else {
    const lines = trusted.map(({ folder, trustedAt }) => `${trustedAt.slice(0, 10)}  ${plainLine(folder)}\n`)
    await print(lines.join(''))
  }
  return 0
}

async function forget(folder: string): Promise<number> {
  const { folders, problem } = await changeTrust(trustFile(process.env), all => {
    all.delete(folder)
  })
  if (problem !== undefined)
    note('The list of trusted folders could not be read; it was replaced by an empty one.')
  else if (!folders.has(folder))
    throw invalid(`${folder} is not trusted. Run 'lango trust --list' to list trusted folders.`)
  await print(`${plainLine(folder)} is no longer trusted.\n`)
  return 0
}

/** Also for a folder that no longer exists, which can still be removed from the list. */
function realOf(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return resolve(folder)
  }
}

function invalid(message: string): AgentError {
  return new AgentError('invalid-argument', message)
}
