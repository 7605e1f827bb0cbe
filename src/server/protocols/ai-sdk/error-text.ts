/** What a tool's error says, as the one text that the AI SDK has room for. */
export function errorText(result: unknown): string {
  const error = (result as { error?: unknown } | null)?.error
  return typeof error === 'string' ? error : JSON.stringify(error ?? result)
}
