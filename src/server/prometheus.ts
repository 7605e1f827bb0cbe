/** Counters, gauges and histograms in Prometheus' text format. */

export type Labels = Readonly<Record<string, string | number>>

interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  lines(): string[]
}

/** The metrics of one server, in the order in which they were made. */
export class Registry {
  readonly #metrics: Metric[] = []

  counter(name: string, help: string, isLabelled = false): Counter {
    return this.#keep(new Counter(name, help, 'counter', isLabelled))
  }

  gauge(name: string, help: string): Gauge {
    return this.#keep(new Gauge(name, help, 'gauge', false))
  }

  /** `buckets` are upper limits in growing order. */
  histogram(name: string, help: string, buckets: readonly number[]): Histogram {
    return this.#keep(new Histogram(name, help, buckets))
  }

  toText(): string {
    const parts = this.#metrics.flatMap(({ name, help, type, lines }) => [
      `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`,
      `# TYPE ${name} ${type}`,
      ...lines(),
    ])
    return parts.map(line => `${line}\n`).join('')
  }

  #keep<Kind extends Metric>(metric: Kind): Kind {
    this.#metrics.push(metric)
    return metric
  }
}

/** One number for each set of labels. */
class Numbers implements Metric {
  readonly #values = new Map<string, number>()

  constructor(
    readonly name: string,
    readonly help: string,
    readonly type: 'counter' | 'gauge',
    isLabelled: boolean,
  ) {
    // A number without labels is there from the start, so that rates can be computed.
    if (!isLabelled) this.#values.set('', 0)
  }

  readonly lines = (): string[] =>
    [...this.#values].map(([labels, value]) => `${this.name}${labels} ${numberText(value)}`)

  protected change(labels: Labels, next: (value: number) => number): void {
    const key = labelText(labels)
    this.#values.set(key, next(this.#values.get(key) ?? 0))
  }
}

class Counter extends Numbers {
  inc(count = 1, labels: Labels = {}): void {
    this.change(labels, value => value + count)
  }
}

class Gauge extends Numbers {
  set(value: number): void {
    this.change({}, () => value)
  }
}

class Histogram implements Metric {
  readonly type = 'histogram'
  readonly #buckets: readonly number[]
  readonly #series = new Map<string, { labels: Labels; counts: number[]; sum: number; count: number }>()

  constructor(
    readonly name: string,
    readonly help: string,
    buckets: readonly number[],
  ) {
    this.#buckets = buckets
  }

  observe(value: number, labels: Labels): void {
    const key = labelText(labels)
    const series = this.#series.get(key) ?? { labels, counts: this.#buckets.map(() => 0), sum: 0, count: 0 }
    this.#series.set(key, series)
    series.sum += value
    series.count += 1
    series.counts = series.counts.map((count, index) =>
      value <= (this.#buckets[index] ?? 0) ? count + 1 : count,
    )
  }

  readonly lines = (): string[] =>
    [...this.#series.values()].flatMap(({ labels, counts, sum, count }) => [
      ...this.#buckets.map((le, index) => this.#bucket(labels, numberText(le), counts[index] ?? 0)),
      this.#bucket(labels, '+Inf', count),
      `${this.name}_sum${labelText(labels)} ${numberText(sum)}`,
      `${this.name}_count${labelText(labels)} ${count}`,
    ])

  #bucket(labels: Labels, le: string, count: number): string {
    return `${this.name}_bucket${labelText({ le, ...labels })} ${count}`
  }
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(String(value))}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  return Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf'
}
