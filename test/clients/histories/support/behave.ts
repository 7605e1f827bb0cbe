import type { Behaviour } from './scenes.js'

/** What a tool does when it is called. */
export async function behave(behaviour: Behaviour): Promise<unknown> {
  if ('returns' in behaviour) return behaviour.returns
  if ('picture' in behaviour) return { note: 'the screen', png: behaviour.picture }
  if ('fails' in behaviour) throw new Error(behaviour.fails)
  return new Promise(() => {})
}
