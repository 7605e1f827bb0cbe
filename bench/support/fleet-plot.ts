/** The grid as two small pictures, drawn for light and dark pages. */
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Cell } from './fleet-window.js'

const COLOURS = { Lango: '#3b82f6', 'ADK, database service': '#f59e0b', 'ADK in memory': '#8b8f98' }
const SIZE = { width: 640, height: 300, left: 60, top: 40, plot: 210 }

export async function plotFleet(cells: readonly Cell[]): Promise<void> {
  for (const delayMs of [0, 200]) {
    const file = fileURLToPath(new URL(`../../docs/images/fleet-${delayMs}ms.svg`, import.meta.url))
    await writeFile(
      file,
      draw(
        cells.filter(cell => cell.delayMs === delayMs),
        delayMs,
      ),
    )
  }
}

function draw(cells: readonly Cell[], delayMs: number): string {
  const groups = [...new Set(cells.map(({ concurrency }) => concurrency))]
  const most = Math.max(1, ...cells.map(({ window }) => window.perSecond))
  const groupWidth = (SIZE.width - SIZE.left - 20) / groups.length
  const bars = groups.flatMap((concurrency, place) => {
    const own = cells.filter(cell => cell.concurrency === concurrency)
    const width = Math.min(44, (groupWidth - 24) / own.length)
    const start = SIZE.left + place * groupWidth + 12
    return [
      ...own.map((cell, index) => bar(cell, start + index * width, width - 4, most)),
      `<text x="${start + (own.length * width) / 2}" y="${SIZE.top + SIZE.plot + 32}" text-anchor="middle">${concurrency.toLocaleString('en')} at once</text>`,
    ]
  })
  const names = Object.entries(COLOURS).map(
    ([name, colour], index) =>
      `<rect x="${SIZE.left + 12 + index * 180}" y="24" width="10" height="10" fill="${colour}"/><text x="${SIZE.left + 28 + index * 180}" y="33">${name}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${SIZE.height}" role="img" aria-label="Runs per second, model ${delayMs} ms">
<style>text{font:12px system-ui,sans-serif;fill:#1f2328}line{stroke:#8b8f98}@media (prefers-color-scheme:dark){text{fill:#e6edf3}}</style>
<text x="${SIZE.left + 12}" y="14" font-weight="600">Runs per second with one tool, model ${delayMs} ms; below each bar the number of processes</text>
${names.join('\n')}
<line x1="${SIZE.left}" y1="${SIZE.top + SIZE.plot}" x2="${SIZE.width - 10}" y2="${SIZE.top + SIZE.plot}"/>
${bars.join('\n')}
</svg>
`
}

function bar({ side, processes, window }: Cell, x: number, width: number, most: number): string {
  const height = (window.perSecond / most) * (SIZE.plot - 24)
  const y = SIZE.top + SIZE.plot - height
  const middle = x + width / 2
  return (
    `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${height.toFixed(1)}" fill="${COLOURS[side]}"/>` +
    `<text x="${middle.toFixed(1)}" y="${(y - 4).toFixed(1)}" text-anchor="middle">${window.perSecond.toFixed(0)}</text>` +
    `<text x="${middle.toFixed(1)}" y="${SIZE.top + SIZE.plot + 15}" text-anchor="middle">${processes}</text>`
  )
}
