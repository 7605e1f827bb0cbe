/** `lango demo`: broken histories, what a provider says to each, and what becomes of it with Lango. */

import { defined } from '../base/defined.js'
import type { AgentError, AgentErrorJson } from '../errors.js'
import type { RunRepair } from '../run/run-event.js'
import { Gallery, type GalleryEntry } from '../runtime/gallery.js'
import { openStore } from '../store/open-store.js'
import type { Flags } from './command.js'
import type { Io } from './io.js'
import { called } from './next-command.js'
import { lineWidth, print, printJson, type Styles, stylesOf } from './output.js'
import { plainLine, wrapped } from './plain-text.js'

/** What happened to one broken history, with and without repair. */
interface Shown {
  id: string
  title: string
  story: string
  profile: string
  asItIs: { status: number; message: string }
  throughLango: { text: string; finishReason: string; repairs: string[]; error?: AgentError | AgentErrorJson }
}

/** Shows one broken history, or all of them. The exit code is 1 when one is not answered. */
export async function demo(io: Io, [name]: readonly string[], flags: Flags): Promise<number> {
  const store = await openStore('memory:')
  const gallery = new Gallery({ store, app: 'lango' })
  const styles = stylesOf(io, io.stdout)
  const shown: Shown[] = []
  try {
    const entries = gallery.list()
    const chosen = name === undefined ? entries : entries.filter(({ id }) => id === name)
    if (chosen.length === 0) await gallery.open(name ?? '', 'user')
    for (const entry of chosen) {
      const outcome = await show(gallery, entry)
      shown.push(outcome)
      if (!flags.json) await print(io, text(io, outcome, styles))
    }
    if (flags.json) await printJson(io, shown)
    else await print(io, `${styles.dim(next(io))}\n`)
  } finally {
    await gallery.close()
    await store.close()
  }
  return shown.every(({ throughLango }) => throughLango.finishReason === 'stop') ? 0 : 1
}

function next(io: Io): string {
  const [lint, doctor, serve] = ['lint <file>', 'doctor --fix', 'serve'].map(command => called(io, command))
  return `Your own: ${lint} names the cause, ${doctor} heals a stored session, ${serve} shows these in the browser.`
}

async function show(gallery: Gallery, { id, title, story, profile }: GalleryEntry): Promise<Shown> {
  const { status, message } = await gallery.sendAsItIs(id)
  const repairs: RunRepair[] = []
  let answer = ''
  let finishReason = ''
  let error: AgentError | AgentErrorJson | undefined
  for await (const event of gallery.heal(await gallery.open(id, 'user'))) {
    if (event.type === 'text-delta') answer += event.text
    if (event.type === 'repair') repairs.push(...event.repairs)
    if (event.type === 'error') error = event.error
    if (event.type === 'run-finish') finishReason = event.finishReason
  }
  const throughLango = {
    text: answer,
    finishReason,
    repairs: [...new Set(repairs.map(({ detail }) => detail))],
    ...defined({ error }),
  }
  return { id, title, story, profile, asItIs: { status, message }, throughLango }
}

const INDENT = ' '.repeat(15)

function text(io: Io, { id, title, story, profile, asItIs, throughLango }: Shown, styles: Styles): string {
  const width = Math.min(100, lineWidth(io))
  const block = (label: string, body: string) => {
    const lines = wrapped(plainLine(body), INDENT, width).map(line => line.slice(INDENT.length))
    return lines.map((line, index) => `${index === 0 ? `  ${label}  ` : INDENT}${line}`).join('\n')
  }
  const lines = [
    `${styles.bold(title)} ${styles.dim(id)}`,
    block(styles.dim('happened   '), story),
    block(styles.red('as it is   '), `${profile} answers ${asItIs.status}: ${asItIs.message}`),
    ...throughLango.repairs.map(repair => block(styles.yellow('repaired   '), repair)),
    throughLango.finishReason === 'stop'
      ? block(styles.green('with Lango '), throughLango.text)
      : block(styles.red('failed     '), throughLango.error?.message ?? throughLango.finishReason),
  ]
  return `${lines.join('\n')}\n\n`
}
