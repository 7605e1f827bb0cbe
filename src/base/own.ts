/**
 * The record's own value under that name. A plain `record[name]` also finds what every object inherits
 * (`constructor`, `toString`, `__proto__` …), so a name that comes from outside is looked up here.
 */
export function own<Value>(record: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined
}
