/** `lango doctor`: checks the installation, or diagnoses and repairs sessions. */
import { AgentError } from '../../errors.js'
import type { Flags } from '../command.js'

/**
 * Checks the installation, or sessions. The exit code is 0 without problems or after a repair, 1 when a check
 * fails, and 3 when a provider would reject a session.
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
  if (session !== undefined && all) refuse('--session and --all cannot be combined.')
  if (fix && session === undefined && !all) refuse('--fix needs --session or --all.')
  if (as !== undefined && (session === undefined || !fix)) {
    refuse('--as needs --session and --fix.')
  }
}
