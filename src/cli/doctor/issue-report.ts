/**
 * `lango doctor --report`: what an issue needs, as Markdown to paste. Versions and checks; with a session its history,
 * of which only the form is shown: roles, kinds of parts, ids, names, order, lengths. No text, argument, result or key.
 */

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { release } from 'node:os'
import { redactText } from '../../base/redact.js'
import { lintSession } from '../../runtime/lint.js'
import type { StoredMessage, ToolCall } from '../../session/message.js'
import { newestMessagePages } from '../../session/session-pages.js'
import type { Flags } from '../command.js'
import type { Io } from '../io.js'
import { findSession, withStore } from '../open-command-store.js'
import { print } from '../output.js'
import { version } from '../version.js'

/** A check of the installation, as the doctor reports it. */
interface ReportedCheck {
  name: string
  status: string
  message: string
}

/** Prints the report. The exit code is 0: what is wrong is what it is for. */
export async function reportForIssue(
  io: Io,
  checks: readonly ReportedCheck[],
  flags: Flags,
): Promise<number> {
  const parts = [versionLines(), checkLines(io, checks)]
  if (flags.session !== undefined) parts.push(await historyLines(io, flags.session, flags))
  await print(io, `${parts.flat().join('\n')}\n`)
  return 0
}

const PACKAGES = [
  '@google/adk',
  '@google/genai',
  'openai',
  '@anthropic-ai/sdk',
  '@photostructure/sqlite',
  'pg',
]

function versionLines(): string[] {
  const rows = [
    ['Lango', version()],
    ['Node', process.versions.node],
    ['System', `${process.platform} ${process.arch} ${release()}`],
    ...PACKAGES.map(name => [name, packageVersion(name)]),
  ]
  return [
    '### Versions',
    '',
    '| | |',
    '|---|---|',
    ...rows.map(([name, value]) => `| ${name} | ${value} |`),
    '',
  ]
}

function packageVersion(name: string): string {
  try {
    const require = createRequire(import.meta.url)
    const paths = require.resolve.paths(name) ?? []
    for (const path of paths) {
      const found = readVersion(`${path}/${name}/package.json`)
      if (found !== undefined) return found
    }
  } catch {
    // Reported as not installed.
  }
  return 'not installed'
}

function readVersion(file: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { version?: string }).version
  } catch {
    return undefined
  }
}

function checkLines(io: Io, checks: readonly ReportedCheck[]): string[] {
  const lines = checks.map(({ name, status, message }) => `- ${status} ${name}: ${withoutHome(io, message)}`)
  return ['### Checks', '', ...lines, '']
}

/** The name of the user is part of many paths. */
function withoutHome(io: Io, text: string): string {
  const home = io.env.HOME ?? io.env.USERPROFILE ?? ''
  return home === '' ? text : text.replaceAll(home, '~')
}

const MOST_MESSAGES = 200

async function historyLines(io: Io, sessionId: string, flags: Flags): Promise<string[]> {
  return withStore(io, flags, async opened => {
    const key = await findSession(opened, sessionId, flags.user)
    const lint = await lintSession(opened.store, key)
    const messages: StoredMessage[] = []
    const range = { beforeSeq: lint.messages + 1, limit: MOST_MESSAGES, pageSize: MOST_MESSAGES }
    for await (const page of newestMessagePages(opened.store, key, range)) messages.unshift(...page)
    const left = lint.messages - messages.length
    const refusing = lint.profiles.filter(({ refused }) => refused).map(({ profile }) => profile)
    return [
      `### History: ${lint.messages} messages`,
      '',
      refusing.length > 0 ? `Rejected as it is by: ${refusing.join(', ')}` : 'Every profile accepts it.',
      '',
      '```',
      ...(left > 0 ? [`… ${left} older messages`] : []),
      ...messages.map(messageLine),
      '```',
    ]
  })
}

/** `3 assistant: text 120, call book_table call_b7Qm2 {people, time}`. */
function messageLine(message: StoredMessage): string {
  const words = [
    ...(message.content === '' ? [] : [`text ${message.content.length}`]),
    ...(message.toolCalls ?? []).map(callWords),
  ]
  const author = message.author === undefined ? '' : ` (${redactText(message.author)})`
  return `${message.seq} ${message.role}${author}: ${words.join(', ') || 'empty'}`
}

function callWords({ id, name, input, output, kind }: ToolCall): string {
  const what = (kind ?? (output === undefined ? 'call' : 'response')) === 'call' ? 'call' : 'result'
  return `${what} ${redactText(name)} ${id ? redactText(id) : 'without id'} ${(output ?? input ?? '').length}`
}
