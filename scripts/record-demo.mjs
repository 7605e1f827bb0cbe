// Writes docs/images/demo.svg: `lango demo` as a recording of sixty seconds. The output is that of a real run, at a
// pace that can be read. `node --import tsx scripts/record-demo.mjs`
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SECONDS = 60
const COLUMNS = 92
const ROWS = 22
const LINE = 19
const LETTER = 8.05
const PADDING = 18
const COLOURS = { happened: '#b8b6ab', as: '#f29682', repaired: '#e3b45c', with: '#83cf98' }

const main = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url))
const env = { ...process.env, NO_COLOR: '1', COLUMNS: String(COLUMNS) }
const { stdout, status } = spawnSync(process.execPath, ['--import', 'tsx', main, 'demo'], {
  cwd: ROOT,
  env,
  encoding: 'utf8',
})
if (status !== 0) throw new Error(`lango demo ended with ${status}.`)
writeFileSync(
  fileURLToPath(new URL('../docs/images/demo.svg', import.meta.url)),
  recording(stdout.trimEnd().split('\n')),
)

/** The recording of a command that prints the given lines. */
function recording(printed) {
  const lines = [
    { text: '$ npx lango demo', colour: '#86d9cc' },
    { text: '', colour: '' },
    ...coloured(printed),
  ]
  const begin = timesOf(lines)
  const width = Math.round(COLUMNS * LETTER + 2 * PADDING)
  const height = ROWS * LINE + 2 * PADDING
  const shown = lines.map(({ text, colour, isBold }, at) => {
    const weight = isBold ? ' font-weight="700"' : ''
    return `<text class="l" style="animation-name:l${at}" y="${(at + 1) * LINE}" fill="${colour}"${weight}>${toXml(text)}</text>`
  })
  const appear = lines.map((_, at) => {
    const percent = share(begin[at])
    return `@keyframes l${at}{0%,${Math.max(0, percent - 0.01)}%{opacity:0}${percent}%,100%{opacity:1}}`
  })
  const scroll = lines.slice(ROWS).map((_, at) => {
    const percent = share(begin[at + ROWS])
    return `${Math.max(0, percent - 0.01)}%{transform:translateY(${-at * LINE}px)}${percent}%{transform:translateY(${-(at + 1) * LINE}px)}`
  })
  const last = -Math.max(0, lines.length - ROWS) * LINE
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="lango demo: broken histories, the errors of the providers, and the answers after repair">
<style>.l{font:13.4px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;animation:${SECONDS}s step-end infinite}.s{animation:scroll ${SECONDS}s step-end infinite}
${appear.join('\n')}
@keyframes scroll{0%{transform:none}${scroll.join('')}100%{transform:translateY(${last}px)}}
@media (prefers-reduced-motion:reduce){.l,.s{animation:none}}</style>
<rect width="${width}" height="${height}" rx="12" fill="#171816"/>
<clipPath id="c"><rect width="${width}" height="${ROWS * LINE + 8}"/></clipPath>
<g transform="translate(${PADDING} ${PADDING - 4})"><g clip-path="url(#c)"><g class="s">
${shown.join('\n')}
</g></g></g>
</svg>
`
}

/** A line has the colour of its label; those without one belong to the line before. */
function coloured(printed) {
  let colour = '#ecebe5'
  return printed.map(text => {
    const label = /^ {2}(happened|as|repaired|with)\b/.exec(text)?.[1]
    if (label) colour = COLOURS[label]
    else if (!text.startsWith(' ')) colour = '#ecebe5'
    return { text, colour, isBold: text !== '' && !text.startsWith(' ') }
  })
}

/** Blocks appear together; the pause before one grows with what there is to read before it. */
function timesOf(lines) {
  const weights = lines.map(({ text }, at) =>
    /^( {2}\S|\S)/.test(text) ? 1 + (lines[at - 1]?.text.length ?? 0) / 60 : 0.15,
  )
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  let passed = 0
  return weights.map(weight => {
    passed += weight
    return (passed / total) * (SECONDS - 5)
  })
}

function share(seconds) {
  return Math.round((seconds / SECONDS) * 10_000) / 100
}

function toXml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
