import { parseArgs } from 'node:util'
import { AgentError, messageOf } from '../errors.js'
import { startStrictProvider } from '../testing/start-strict-provider.js'
import { STRICT_PROFILES, type StrictProfile } from '../testing/strict/profile.js'

const HELP = `Starts a fake provider that enforces the real rules of a model generation and refuses with the
vendor's real error bodies. Point any framework at the base URL that it prints.

Usage: lango strict --profile NAME [--port N] [--lenient] [--json]

Options:
  --profile NAME   ${STRICT_PROFILES.join(', ')}
  --port N         default 0: any free port
  --lenient        accept what has been seen to be accepted at least somewhere
  --json           one JSON line with profile, baseUrl and port, then one per refused request

Examples:
  lango strict --profile gemini-3 --port 0
  lango strict --profile anthropic-4.6 --port 8089 --json
`

/** `lango strict`: runs until it is interrupted. */
export async function strict(args: readonly string[]): Promise<void> {
  const options = readOptions(args)
  if (options.help) {
    process.stdout.write(HELP)
    return
  }
  const { profile, port, reading, json } = options
  const server = await startStrictProvider({ profile, port, reading })
  const say = (fact: object, words: string) =>
    process.stdout.write(`${json ? JSON.stringify(fact) : words}\n`)
  say(
    { profile, baseUrl: server.baseUrl, port: server.port },
    `strict ${profile} at ${server.baseUrl} (Ctrl-C stops it; any key is accepted)`,
  )
  let told = 0
  const watch = setInterval(() => {
    for (const violation of server.violations.slice(told)) {
      say(violation, `refused ${violation.code} (${violation.status}): ${violation.message}`)
    }
    told = server.violations.length
  }, 100)
  await new Promise<void>(resolve => {
    process.once('SIGINT', resolve)
    process.once('SIGTERM', resolve)
  })
  clearInterval(watch)
  await server.close()
}

function readOptions(args: readonly string[]) {
  const { values } = parse(args)
  const { profile = '', port = '0' } = values
  if (!values.help && !STRICT_PROFILES.includes(profile as StrictProfile)) {
    const given = profile === '' ? '--profile is missing.' : `There is no profile "${profile}".`
    throw new AgentError('invalid-argument', `${given} Choose one of: ${STRICT_PROFILES.join(', ')}.`)
  }
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new AgentError('invalid-argument', `--port is "${port}", but must be a number from 0 to 65535.`)
  }
  return {
    profile: profile as StrictProfile,
    port: Number(port),
    reading: values.lenient ? ('lenient' as const) : ('strict' as const),
    json: values.json ?? false,
    help: values.help ?? false,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        profile: { type: 'string' },
        port: { type: 'string' },
        lenient: { type: 'boolean' },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    })
  } catch (error) {
    throw new AgentError('invalid-argument', `${messageOf(error)} See 'lango strict --help'.`)
  }
}
