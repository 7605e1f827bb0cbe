/** `lango chat`: opens the runtime and the session, and lets a person talk to it, on a terminal or through pipes. */

import { AgentError } from '../../errors.js'
import { loadOptional } from '../../packages.js'
import { keyHint } from '../../provider/vendors.js'
import { missingName, withCommand } from '../installed-packages.js'
import type { Io } from '../io.js'
import { called, givenFlags, quoted } from '../next-command.js'
import {
  type CommonFlags,
  type ModelFlags,
  modelOptions,
  type OpenedRuntime,
  openRuntime,
} from '../open-runtime.js'
import { version } from '../version.js'
import { ChatSession, HUNG_UP } from './chat-session.js'
import { isDemo } from './chat-state.js'
import { unusedSessionName } from './commands.js'

/** What `lango chat` takes. */
export interface ChatFlags extends CommonFlags, ModelFlags {
  /** The session to continue, or the name of a new one. Default: a new name. */
  session?: string | undefined
  user?: string | undefined
  /** False: no colours. */
  color?: boolean | undefined
}

/** Runs the chat until the user leaves, and prints how to continue it. Returns the exit code. */
export async function chat(io: Io, flags: ChatFlags): Promise<number> {
  const opened = await openRuntime(io, flags)
  let code = 1
  try {
    const session = await startSession(io, opened, flags)
    const begin = async () => {
      if (flags.session !== undefined) await session.open(flags.session)
    }
    code = await talk(io, session, begin)
    session.leave()
    // After a hang-up the terminal is closed, and writing would fail.
    if (session.exists && code !== HUNG_UP) {
      io.stderr.write(`Continue with: ${continuation(io, session, flags)}\n`)
    }
    return code
  } finally {
    await opened.runtime.close()
    // All is stored. Node fails loudly when it finds its terminal gone at the end; the signal ends it quietly.
    if (code === HUNG_UP) io.raise('SIGHUP')
  }
}

async function startSession(io: Io, opened: OpenedRuntime, flags: ChatFlags): Promise<ChatSession> {
  const { createRegistry } = await import('../../provider/provider-registry.js')
  const userId = flags.user ?? 'user'
  const owner = { appName: opened.config.app, userId }
  const sessionId = flags.session ?? (await unusedSessionName(opened.runtime.store, owner))
  // What the configuration allows is what the registry takes; the runtime has checked it.
  const registry = createRegistry(opened.config.providers as Parameters<typeof createRegistry>[0])
  const options = await modelOptions(io, flags)
  const header = greeting(opened)
  return new ChatSession({ opened, cwd: io.cwd, registry, userId, sessionId, options, header })
}

async function talk(io: Io, session: ChatSession, begin: () => Promise<void>): Promise<number> {
  const { chatInPlainText } = await import('./plain-chat.js')
  if (!isTerminal(io)) return chatInPlainText(io, session, begin)
  try {
    const { chatOnScreen } = await loadOptional('terminal', () => import('./chat-screen.js'))
    return await chatOnScreen(io, session, begin)
  } catch (error) {
    if (!(error instanceof AgentError) || missingName(error) !== 'terminal') throw error
    io.stderr.write(`${withCommand(io, error)}\nUntil then the chat goes line by line.\n`)
    return chatInPlainText(io, session, begin, { asks: true })
  }
}

/** A screen needs keys to come and cursor moves to be understood. */
function isTerminal(io: Io): boolean {
  return io.stdin.isTTY === true && io.stdout.isTTY === true && io.env.TERM !== 'dumb'
}

function greeting({ model, loaded }: OpenedRuntime): string[] {
  const hello = `Lango ${version()} · /help lists commands and keys`
  if (model === undefined || !isDemo(model)) return [hello]
  const isForWantOfKey = loaded.sources['agent.model']?.includes('no key') === true
  const why = isForWantOfKey ? 'no key was found' : 'it was asked for'
  return [hello, `offline demo: ${why}. For a real model: ${keyHint()}`]
}

/** The command that comes back to this session from the same folder. */
function continuation(io: Io, session: ChatSession, flags: ChatFlags): string {
  const place = givenFlags(flags, ['config', 'agent', 'store', 'app', 'user', 'model', 'trust'])
  return `${called(io, 'chat')} --session ${quoted(session.state.sessionId)}${place}`
}
