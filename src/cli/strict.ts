import { AgentError, messageOf } from '../errors.js'
import { startStrictProvider } from '../testing/start-strict-provider.js'
import {
  STRICT_PLATFORMS,
  STRICT_PROFILES,
  type StrictPlatform,
  type StrictProfile,
} from '../testing/strict/profile.js'
import { type Flags, wholeNumber } from './command.js'
import type { Io } from './io.js'

/** `lango strict`: runs until it is interrupted. */
export async function strict(io: Io, flags: Flags): Promise<number> {
  const profile = readProfile(flags.profile)
  const port = wholeNumber('--port', flags.port, 0, 65_535) ?? 0
  const reading = flags.lenient ? 'lenient' : 'strict'
  const platform = readPlatform(flags.platform)
  const settings = { profile, port, reading, ...(platform ? { platform } : {}) } as const
  const server = await startStrictProvider(settings).catch(error => {
    if (!messageOf(error).includes('EADDRINUSE')) throw error
    throw new AgentError(
      'invalid-argument',
      `Port ${port} is in use. Choose another with --port; 0 means any free port.`,
      { cause: error },
    )
  })
  const write = (fact: object, text: string) =>
    io.stdout.write(`${flags.json ? JSON.stringify(fact) : text}\n`)
  write(
    { profile, ...(platform ? { platform } : {}), baseUrl: server.baseUrl, port: server.port },
    `strict ${profile}${platform ? ` on ${platform}` : ''} at ${server.baseUrl} (Ctrl-C stops it; any key is accepted)`,
  )
  let reported = 0
  const report = () => {
    for (const violation of server.violations.slice(reported)) {
      write(violation, `rejected ${violation.code} (${violation.status}): ${violation.message}`)
    }
    reported = server.violations.length
  }
  const watch = setInterval(report, 100)
  await new Promise<void>(resolve => {
    io.signals.once('SIGINT', resolve)
    io.signals.once('SIGTERM', resolve)
  })
  clearInterval(watch)
  await server.close()
  report()
  return 0
}

function readPlatform(platform: string | undefined): StrictPlatform | undefined {
  if (platform === undefined || STRICT_PLATFORMS.includes(platform as StrictPlatform))
    return platform as StrictPlatform | undefined
  throw new AgentError(
    'invalid-argument',
    `Unknown platform "${platform}". Choose one of: ${STRICT_PLATFORMS.join(', ')}.`,
  )
}

function readProfile(profile: string | undefined): StrictProfile {
  if (STRICT_PROFILES.includes(profile as StrictProfile)) return profile as StrictProfile
  const given = profile === undefined ? '--profile is missing.' : `Unknown profile "${profile}".`
  throw new AgentError('invalid-argument', `${given} Choose one of: ${STRICT_PROFILES.join(', ')}.`)
}
