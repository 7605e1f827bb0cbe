/** One line of a benchmark: our figure, the peer's or yardstick's in the same run, and their ratio. */
export interface BenchRow {
  bench: string
  name: string
  unit: string
  ours: number
  peer: number
  /** How many times faster or smaller than the peer (`higher`), or how many times its cost (`lower`). */
  ratio: number
  goal: string
  met: boolean | null
}

/** Collects rows and prints them: a table for people, an array with `--json`. */
export class Report {
  private readonly rows: BenchRow[] = []
  private readonly json = process.argv.includes('--json')

  constructor(private readonly bench: string) {}

  /** Says what is being measured, on stderr, so that `--json` stays clean. */
  progress(text: string): void {
    process.stderr.write(`${text}\n`)
  }

  /** A cost that may be at most `limit` times the yardstick. */
  atMost(name: string, unit: string, ours: number, peer: number, limit?: number): void {
    this.add(
      name,
      unit,
      ours,
      peer,
      ours / peer,
      limit === undefined ? '' : `≤ ${limit}×`,
      r => r <= (limit ?? 0),
      limit,
    )
  }

  /** A speed-up over a peer that must be at least `limit`. Both figures are costs. */
  atLeast(name: string, unit: string, ours: number, peer: number, limit?: number): void {
    this.add(
      name,
      unit,
      ours,
      peer,
      peer / ours,
      limit === undefined ? '' : `≥ ${limit}×`,
      r => r >= (limit ?? 0),
      limit,
    )
  }

  /** A rate that must be at least `limit` times the peer's. */
  rate(name: string, unit: string, ours: number, peer: number, limit?: number): void {
    const goal = limit === undefined ? '' : `≥ ${limit}×`
    this.add(name, unit, ours, peer, ours / peer, goal, ratio => ratio >= (limit ?? 0), limit)
  }

  /** A share in percent that must be at least `least`. */
  share(name: string, percent: number, least?: number): void {
    const goal = least === undefined ? '' : `≥ ${least} %`
    const row = {
      bench: this.bench,
      name,
      unit: '%',
      ours: round(percent),
      peer: 100,
      ratio: round(percent / 100),
    }
    this.rows.push({ ...row, goal, met: least === undefined ? null : percent >= least })
  }

  /** A figure that may be at most `limit`, in its own unit. */
  figure(name: string, unit: string, ours: number, limit?: number): void {
    const goal = limit === undefined ? '' : `≤ ${limit} ${unit}`
    const row = { bench: this.bench, name, unit, ours: round(ours), peer: round(limit ?? ours) }
    this.rows.push({
      ...row,
      ratio: round(ours / (limit ?? ours)),
      goal,
      met: limit === undefined ? null : ours <= limit,
    })
  }

  /** Prints everything; the exit code says whether all goals were met. */
  finish(): void {
    if (this.json) console.log(JSON.stringify(this.rows, null, 2))
    else printTable(this.rows)
    process.exitCode = this.rows.some(row => row.met === false) ? 1 : 0
  }

  private add(
    name: string,
    unit: string,
    ours: number,
    peer: number,
    ratio: number,
    goal: string,
    met: (ratio: number) => boolean,
    limit: number | undefined,
  ): void {
    const row = {
      bench: this.bench,
      name,
      unit,
      ours: round(ours),
      peer: round(peer),
      ratio: round(ratio),
      goal,
    }
    this.rows.push({ ...row, met: limit === undefined ? null : met(ratio) })
  }
}

/** Median and 99th percentile of samples. */
export function summarize(samples: readonly number[]): { median: number; p99: number } {
  const sorted = [...samples].sort((a, b) => a - b)
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { median: at(0.5), p99: at(0.99) }
}

/** Runs `work` so many times and returns the microseconds of each run. */
export async function timeEach(count: number, work: (index: number) => unknown): Promise<number[]> {
  const samples: number[] = []
  for (let index = 0; index < count; index++) {
    const started = performance.now()
    await work(index)
    samples.push((performance.now() - started) * 1000)
  }
  return samples
}

function round(value: number): number {
  return Number(value.toPrecision(4))
}

function printTable(rows: readonly BenchRow[]): void {
  const cells = rows.map(row => [
    row.name,
    `${row.ours} ${row.unit}`,
    `${row.peer} ${row.unit}`,
    `${row.ratio}×`,
    row.goal,
    row.met === null ? '' : row.met ? 'met' : 'MISSED',
  ])
  const header = ['measure', 'Lango', 'peer', 'ratio', 'goal', '']
  const widths = header.map((title, column) =>
    Math.max(title.length, ...cells.map(row => row[column]?.length ?? 0)),
  )
  for (const row of [header, ...cells])
    console.log(row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '))
}
