// The table in `docs/adk.md` is made of the suite's own tables. `LANGO_WRITE_DOCS=1` writes it anew.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ALL } from './agents.js'
import { EXPECTED_DIFFERENCES } from './expected-differences.js'
import { RUN_FACTS } from './run-facts.js'
import { OTHERWISE, SESSION_FACTS } from './session-facts.js'

const PAGE = join(import.meta.dirname, '../../docs/adk.md')
const [BEGIN, END] = ['<!-- parity: begin -->', '<!-- parity: end -->']

interface Row {
  feature: string
  agents: number
  notes: readonly { verdict: 'better' | 'differs'; reason: string }[]
}

function rows(): Row[] {
  const features = [...new Set(Object.values(ALL).map(({ feature }) => feature))].sort((one, two) =>
    one.localeCompare(two),
  )
  const agents = features.map(feature => {
    const names = Object.keys(ALL).filter(name => ALL[name]?.feature === feature)
    const notes = EXPECTED_DIFFERENCES.filter(({ cases }) => cases.some(name => names.includes(name)))
    return { feature, agents: names.length, notes: distinct(notes) }
  })
  const questions = Object.keys(SESSION_FACTS).length + Object.keys(RUN_FACTS).length
  return [...agents, { feature: 'Session service', agents: questions, notes: Object.values(OTHERWISE) }]
}

/** One note per reason. */
function distinct(notes: Row['notes']): Row['notes'] {
  return [...new Map(notes.map(note => [note.reason, note])).values()]
}

function cell({ notes }: Row): string {
  if (notes.length === 0) return 'same'
  return notes.map(({ verdict, reason }) => `**${verdict}**: ${reason}`).join('<br>')
}

function table(): string {
  const lines = rows().map(row => `| ${row.feature} | ${row.agents} | ${cell(row)} |`)
  return ['| feature | agents | compared with bare ADK |', '|---|---|---|', ...lines].join('\n')
}

test('docs/adk.md shows every feature with what is the same, better and different', () => {
  const text = readFileSync(PAGE, 'utf8')
  const [before = '', rest = ''] = text.split(BEGIN)
  const [, after = ''] = rest.split(END)
  const expected = `${before}${BEGIN}\n${table()}\n${END}${after}`
  if (process.env.LANGO_WRITE_DOCS === '1') writeFileSync(PAGE, expected)
  else
    expect(text, 'write it with LANGO_WRITE_DOCS=1 npx vitest run test/adk-parity/docs.test.ts').toBe(
      expected,
    )
})
