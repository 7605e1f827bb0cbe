/** `lango doctor`: is the installation in order, and what is wrong with a session. */
import { AgentError } from '../../errors.js'
import type { Flags } from '../command.js'

/**
 * Checks the installation, or explains sessions. The exit code is 0 when all is well or healed, 1 when a check
 * fails, and 3 when a provider would refuse a session.
 */
export async function doctor(flags: Flags): Promise<number> {
  refuseContradictions(flags)
  if (flags.session !== undefined) {
    const { treatSession } = await import('./treat-sessions.js')
    return treatSession(flags.session, flags)
  }
  if (flags.all) {
    const { treatAll } = await import('./treat-sessions.js')
    return treatAll(flags)
  }
  const { checkInstallation } = await import('./check-installation.js')
  return checkInstallation(flags)
}

function refuseContradictions({ session, all, fix, as }: Flags): void {
  const refuse = (message: string) => {
    throw new AgentError('invalid-argument', `${message} See 'lango doctor --help'.`)
  }
  if (session !== undefined && all) refuse('Name one session with --session, or take --all: not both.')
  if (fix && session === undefined && !all)
    refuse('--fix heals sessions: name one with --session, or take --all.')
  if (as !== undefined && (session === undefined || !fix)) {
    refuse('--as names the copy of one session: it goes with --session and --fix.')
  }
}
