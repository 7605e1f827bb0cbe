/** The names that every plain object inherits: `constructor`, `toString`, `__proto__` and their kin. */
export const PROTOTYPE_NAMES: readonly string[] = Object.getOwnPropertyNames(Object.prototype)

/** An object with that name as an own key, also where it is `__proto__`. */
export function withKey<Value>(name: string, value: Value): Record<string, Value> {
  return Object.fromEntries([[name, value]])
}

/** Tries every name and returns those that fail, with the reason: `expect(await failuresByName(check)).toEqual([])`. */
export async function failuresByName(check: (name: string) => unknown): Promise<string[]> {
  const failures: string[] = []
  for (const name of PROTOTYPE_NAMES) {
    try {
      await check(name)
    } catch (error) {
      failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return failures
}
