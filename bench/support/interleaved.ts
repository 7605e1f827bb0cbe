/** At least three samples of each side, in turns. */
export const SAMPLES = Math.max(3, Number(process.env.LANGO_BENCH_SAMPLES ?? 3))

export interface Sides {
  ours: number
  peer: number
  all: { ours: number[]; peer: number[] }
}

/** The median of each side. They take turns, so that a busy moment of the machine meets both. */
export async function interleaved(ours: () => Promise<number>, peer: () => Promise<number>): Promise<Sides> {
  const all = { ours: [] as number[], peer: [] as number[] }
  for (let sample = 0; sample < SAMPLES; sample++) {
    all.ours.push(await ours())
    all.peer.push(await peer())
  }
  return { ours: median(all.ours), peer: median(all.peer), all }
}

export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

export function spread({ all }: Sides): string {
  const range = (values: readonly number[]) => values.map(value => value.toPrecision(4)).join(', ')
  return `  Lango ${range(all.ours)}; peer ${range(all.peer)}`
}
