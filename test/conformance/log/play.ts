/** Plays scenarios: without a cut, with one, and with all of them. */
import { type Cut, MODES, type Problem, type Stores, World } from './cut-harness.js'
import { judge } from './judge.js'
import { scenario } from './scenarios.js'

export interface Played {
  readonly cut: Cut | undefined
  readonly problems: readonly Problem[]
  /** Calls of the store, in order. */
  readonly calls: readonly string[]
}

export async function play(stores: Stores, name: string, cut?: Cut): Promise<Played> {
  const world = new World(stores, scenario(name), { cut })
  await world.setUp()
  await world.play()
  return { cut, problems: await judge(world), calls: world.calls }
}

/** After how many calls of others a late process continues; then they have finished. */
const PROGRESS = [1, 2, undefined]

/** Every cut of a scenario with so many calls. */
export function cutsOf(calls: number): Cut[] {
  return Array.from({ length: calls }, (_, index) => index + 1).flatMap(call =>
    MODES.flatMap((mode): Cut[] => {
      if (mode !== 'late') return [{ mode, call }]
      return PROGRESS.map(progress => ({ mode, call, ...(progress === undefined ? {} : { progress }) }))
    }),
  )
}
