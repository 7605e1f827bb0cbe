/**
 * Whether a tool's result says that the tool failed: `error` says something, or `isError` is true (the shape of
 * MCP results). Tools that return `{ rows, error: null }` have succeeded. Only the result's own fields count.
 */
export function isToolError(result: unknown): boolean {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return false
  const own = (name: string): unknown => (Object.hasOwn(result, name) ? Reflect.get(result, name) : undefined)
  return Boolean(own('error')) || own('isError') === true
}
