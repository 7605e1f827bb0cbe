import { afterAll } from 'vitest'
import {
  type StrictProfile,
  type StrictProvider,
  type StrictProviderOptions,
  startStrictProvider,
} from '../../src/entries/testing.js'

/** Where a profile takes its requests. */
function pathOf(profile: StrictProfile, stream = false): string {
  if (profile.startsWith('gemini')) {
    return stream ? '/v1beta/models/m:streamGenerateContent?alt=sse' : '/v1beta/models/m:generateContent'
  }
  if (profile.startsWith('anthropic')) return '/v1/messages'
  if (profile === 'converse') return `/model/m/converse${stream ? '-stream' : ''}`
  return profile.endsWith('-responses') ? '/v1/responses' : '/v1/chat/completions'
}

export interface Posted {
  status: number
  headers: Headers
  text: string
  body: unknown
}

/** Posts a body as it is, without any SDK between. */
export async function post(
  server: StrictProvider,
  body: unknown,
  options: { stream?: boolean; headers?: Record<string, string>; path?: string } = {},
): Promise<Posted> {
  const path = options.path ?? pathOf(server.profile, options.stream)
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(server.profile.startsWith('anthropic') ? { 'anthropic-version': '2023-06-01' } : {}),
      ...options.headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: parsed(text) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Servers that are closed when the file's tests are done. */
export function serverPool(): {
  start(options: StrictProviderOptions): Promise<StrictProvider>
  shared(profile: StrictProfile, reading?: 'strict' | 'lenient'): Promise<StrictProvider>
} {
  const open: StrictProvider[] = []
  const shared = new Map<string, Promise<StrictProvider>>()
  const start = async (options: StrictProviderOptions) => {
    const server = await startStrictProvider(options)
    open.push(server)
    return server
  }
  afterAll(async () => {
    for (const server of open) await server.close()
  })
  return {
    start,
    shared(profile, reading = 'strict') {
      const key = `${profile} ${reading}`
      const running = shared.get(key) ?? start({ profile, reading })
      shared.set(key, running)
      return running
    },
  }
}

export const WEATHER_SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
}
