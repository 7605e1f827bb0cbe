/** The keys of `T` that may be `undefined` become optional; the others stay as they are. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/**
 * A copy without the keys whose value is `undefined`, for optional properties under `exactOptionalPropertyTypes`:
 * `{ role, ...defined({ author }) }`.
 */
export function defined<T extends object>(value: T): Defined<T> {
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key]
    if (item !== undefined) copy[key] = item
  }
  return copy as Defined<T>
}
