/**
 * The SDK reads an error's words from `error` in its body and says "no body" when there is no such field.
 * Mistral, vLLM and others answer flat, and some wrap the body in an array; here every error body gets the
 * form that the SDK reads, so that the provider's own words reach the user.
 */
export async function fetchWithNestedErrors(
  input: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const response = await fetch(input, init)
  if (response.ok) return response
  const text = await response.text()
  return new Response(nestError(text), {
    status: response.status,
    statusText: response.statusText,
    headers: jsonHeaders(response.headers),
  })
}

/** The body of an error with its facts under `error`. */
function nestError(text: string): string {
  const body = parse(text)
  const inner: unknown = Array.isArray(body) ? body[0] : body
  if (inner === null || typeof inner !== 'object') {
    return JSON.stringify({ error: { message: text.trim() || 'The server gave no reason.' } })
  }
  const error = 'error' in inner ? inner.error : inner
  return JSON.stringify({ error: typeof error === 'string' ? { ...inner, message: error } : error })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The body is plain JSON again, whatever it was encoded as on its way. */
function jsonHeaders(headers: Headers): Headers {
  const copy = new Headers(headers)
  copy.set('content-type', 'application/json')
  copy.delete('content-length')
  copy.delete('content-encoding')
  return copy
}
