/** The part of a user's agent that an error was thrown in: a node of a workflow, a callback of a tool, or an agent. */
export type FailureOrigin = { node: string } | { tool: string } | { agent: string }

const origins = new WeakMap<object, FailureOrigin>()

/** Notes where an error was thrown. The innermost part notes first, and counts. */
export function markOrigin(error: unknown, origin: FailureOrigin): void {
  if (typeof error === 'object' && error !== null && !origins.has(error)) origins.set(error, origin)
}

/** Where an error was thrown, if that was noted. */
export function originOf(error: unknown): FailureOrigin | undefined {
  return typeof error === 'object' && error !== null ? origins.get(error) : undefined
}
