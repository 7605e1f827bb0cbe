/** The names that every plain object inherits: `constructor`, `toString`, `__proto__` and their kin. */
export const PROTOTYPE_NAMES: readonly string[] = Object.getOwnPropertyNames(Object.prototype)

/** An object with that name as an own key, also where it is `__proto__`. */
export function withKey<Value>(name: string, value: Value): Record<string, Value> {
  return Object.fromEntries([[name, value]])
}
