/**
 * The commands of README, CONTRIBUTING and docs: lines of `sh` blocks, and lines of `console` blocks that begin with `$`.
 * Each is run as it stands, in a folder that has what the pages speak of, or is listed here with the reason why not.
 */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Command {
  file: string
  line: number
  text: string
  /** The output below it in a `console` block; empty when the page shows none. */
  shown: string
}

export function findCommands(root: string): Command[] {
  const docs = readdirSync(join(root, 'docs')).filter(name => name.endsWith('.md'))
  const pages = ['README.md', 'CONTRIBUTING.md', ...docs.map(name => `docs/${name}`).sort()]
  return pages.flatMap(file => commandsIn(file, readFileSync(join(root, file), 'utf8').split('\n')))
}

function commandsIn(file: string, lines: readonly string[]): Command[] {
  const commands: Command[] = []
  let language = ''
  let open: Command | undefined
  for (const [index, line] of lines.entries()) {
    const [, info] = /^```(\w*)/.exec(line) ?? []
    if (info !== undefined) {
      language = language === '' ? info || 'text' : ''
      open = undefined
      continue
    }
    if (language !== 'sh' && language !== 'console') continue
    const written = language === 'sh' ? line : (/^\$ (.*)/.exec(line)?.[1] ?? '')
    // A line that ends in a backslash, or an open quotation, goes on.
    if (open && (open.text.endsWith('\\') || isOpen(open.text))) {
      open.text = open.text.endsWith('\\') ? open.text.slice(0, -1) + line.trim() : `${open.text}\n${line}`
      continue
    }
    if (language === 'console' && written === '') {
      const last = commands.at(-1)
      if (last) last.shown += `${line}\n`
      continue
    }
    const text = written.replace(/(^|\s+)# .*$/, '').trimEnd()
    open = text === '' ? undefined : { file, line: index + 1, text, shown: '' }
    if (open) commands.push(open)
  }
  return commands
}

/** The files that a page has its reader save: blocks below a line that ends with "save it as `name`:". */
export function filesOf(page: string): { name: string; content: string }[] {
  const blocks = page.matchAll(/[Ss]ave (?:it|this) as `([\w.-]+)`:\n\n```\w+\n([\s\S]*?\n)```\n/g)
  return [...blocks].map(([, name = '', content = '']) => ({ name, content }))
}

/** Whether a command printed what its page shows. `…` stands for any text, "just now" for any time that has passed. */
export function isAsShown(printed: string, shown: string): boolean {
  const line = (text: string) => text.trim().replace(/\s+/g, ' ')
  const pattern = line(shown)
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('…', '.*')
    .replaceAll('just now', '(just now|\\d+ (min|h|d) ago)')
  return new RegExp(`^${pattern}$`).test(line(printed))
}

function isOpen(text: string): boolean {
  return (text.match(/'/g)?.length ?? 0) % 2 === 1
}

/** Commands that are not run here, and why. */
const NOT_RUN: readonly [RegExp, string][] = [
  [/^npm ci\b/, 'installs a clone: the first step of every run of CI'],
  [/^npm install\b/, 'needs the registry: npm run test:lanes -- installed-esm installed-cjs'],
  [
    /^(npx )?lango add (?!.*--print)\w/,
    'needs the registry: npm run test:lanes -- installed-esm installed-cjs',
  ],
  [/^npm (test|run (check|fuzz|simulate|chaos))\b/, 'takes minutes: steps of CI'],
  [/^(docker|sudo|gcloud|fly)\b/, 'changes a machine or an account of somebody'],
  [/^npx esbuild\b/, 'a program of somebody; the lanes of npm run test:lanes build theirs so'],
  [/^npm run (bench|build)\b/, 'takes minutes: measures'],
  [/^15 3 \* \* \*/, 'a line of crontab; its command is run on its own'],
  [/^(pg_dump|pg_restore|psql)\b/, 'a program of PostgreSQL that is not installed with Lango'],
  [/postgres:\/\//, 'a server of somebody'],
  [/^git clone\b/, 'a repository of somebody'],
  [/^export \w+=…/, 'a key of somebody'],
  [/^lango chat --model anthropic/, 'needs a key'],
  [/^lango chat --agent agent\.ts/, 'an agent of somebody'],
  [/^source <\(lango completion zsh\)/, 'needs zsh'],
  [/adcc4d9b/, 'names the run that the command before it has started'],
  [/^lango trust$/, 'asks on a terminal: test/cli/trust.test.ts'],
]

export function reasonNotToRun({ text }: Command): string | undefined {
  return NOT_RUN.find(([pattern]) => pattern.test(text))?.[1]
}

/** Reasons that fit no command any more. */
export function staleReasons(commands: readonly Command[]): string[] {
  return NOT_RUN.flatMap(([pattern]) =>
    commands.some(({ text }) => pattern.test(text)) ? [] : [`${pattern}`],
  )
}

/** Commands that end otherwise than with 0, as their page says. */
const CODES: readonly [RegExp, number | NodeJS.Signals][] = [
  [/^node book\.mjs crash$/, 'SIGKILL'],
  [/^lango sessions lst$/, 1],
  [/--modl /, 1],
  [/^lango sessions import s1\.jsonl$/, 1],
  [/^lango (lint --session s1 --app shop\b|doctor --all$)/, 3],
  [/^npx lango lint request\.json$/, 3],
  [/^curl localhost:18789\/api\/info/, 22],
  // They ask, and there is nobody to answer.
  [/^lango (erase --user ann|restore \/backups\/lango-monday\.db)$/, 1],
]

export interface Place {
  /** Where `lango` is found: a folder for PATH. */
  bin: string
  /** The folder to run in, which has what the pages speak of. */
  cwd: string
  /** Whether the output is compared with the page. */
  compares: boolean
  /** The address of a server on the same store, for curl; with the tokens of the page, where it is about them. */
  serverUrl: (withTokens: boolean) => Promise<string>
  /** Further variables. */
  env?: Readonly<Record<string, string>>
}

const LIMIT_MS = 240_000

/** Runs one command by bash, and returns what is wrong with it. */
export async function runCommand(command: Command, place: Place): Promise<string | undefined> {
  const isServer = /\blango (serve|strict)\b/.test(command.text)
  const text = /\bcurl\b/.test(command.text)
    ? await withServer(command.text, place)
    : withoutOthers(command.text)
  const { PATH = '' } = process.env
  const child = spawn('bash', ['-c', text], {
    cwd: place.cwd,
    // A group of its own: servers are ended with all that they started.
    detached: true,
    env: {
      ...{ PATH: `${place.bin}:${PATH}`, HOME: place.cwd, LANGO_PORT: '0', LANGO_TRUST: '1' },
      ...{ LANGO_TRUST_FILE: join(place.cwd, 'trust.json'), npm_config_update_notifier: 'false' },
      ...place.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let printed = ''
  const end = (signal: NodeJS.Signals) => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, signal)
  }
  const keep = (chunk: unknown) => {
    output += String(chunk)
    if (isServer && /https?:\/\/[\w.]+:\d+/.test(output)) end('SIGTERM')
  }
  child.stdout.on('data', keep)
  child.stdout.on('data', chunk => {
    printed += String(chunk)
  })
  child.stderr.on('data', keep)
  const timer = setTimeout(() => end('SIGKILL'), LIMIT_MS)
  const code = await new Promise(resolve => child.on('close', (status, signal) => resolve(status ?? signal)))
  clearTimeout(timer)
  const expected = CODES.find(([pattern]) => pattern.test(command.text))?.[1] ?? 0
  const isEnded = isServer && /https?:\/\//.test(output)
  if (code === expected || (isEnded && (code === 0 || code === 143 || code === 'SIGTERM'))) {
    if (!place.compares || command.shown === '' || isAsShown(printed, command.shown)) return undefined
    return `${command.file}:${command.line}: "${command.text}" printed other than the page shows:\n${printed}`
  }
  return `${command.file}:${command.line}: "${command.text}" ended with ${code}, not ${expected}:\n${output.slice(-1500)}`
}

/** Without programs and folders that a reader has and a test does not. */
function withoutOthers(text: string): string {
  return text.replaceAll('/backups/', './backups/').replace(/\| jq .*$/, '| cat')
}

async function withServer(text: string, { serverUrl }: Place): Promise<string> {
  const url = await serverUrl(/\/api\/info/.test(text))
  return text
    .replaceAll(/localhost:187\d\d/g, url.replace('http://', ''))
    .replace(/^curl/, 'curl -sS --fail-with-body --max-time 120')
}
