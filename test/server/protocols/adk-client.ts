/** A client of ADK's documented routes: no more than the routes and fields that ADK's own documentation names. */

export interface AdkPart {
  text?: string
  thought?: boolean
  functionCall?: { id?: string; name?: string; args?: Record<string, unknown> }
  functionResponse?: { id?: string; name?: string; response?: Record<string, unknown> }
  inlineData?: { mimeType: string; data: string }
}

export interface AdkEvent {
  id: string
  invocationId: string
  author: string
  timestamp: number
  partial?: boolean
  content?: { role: string; parts: AdkPart[] }
  actions: { stateDelta: Record<string, unknown> }
  usageMetadata?: { totalTokenCount?: number }
  errorMessage?: string
}

export interface AdkSession {
  id: string
  appName: string
  userId: string
  state: Record<string, unknown>
  events: AdkEvent[]
  lastUpdateTime: number
}

export class AdkClientError extends Error {
  constructor(
    readonly status: number,
    readonly body: { error?: string; detail?: string; events?: AdkEvent[] },
  ) {
    super(body.error ?? `status ${status}`)
  }
}

export interface AdkRun {
  sessionId: string
  text?: string
  parts?: AdkPart[]
  streaming?: boolean
  stateDelta?: Record<string, unknown>
}

export class AdkClient {
  constructor(
    private readonly url: string,
    private readonly appName: string,
    private readonly userId: string,
    private readonly headers: Record<string, string> = {},
  ) {}

  listApps(): Promise<string[]> {
    return this.#json('GET', '/list-apps')
  }

  createSession(id?: string, state?: Record<string, unknown>): Promise<AdkSession> {
    return this.#json('POST', this.#path(id), { state })
  }

  getSession(id: string): Promise<AdkSession> {
    return this.#json('GET', this.#path(id))
  }

  listSessions(): Promise<AdkSession[]> {
    return this.#json('GET', this.#path())
  }

  patchSession(id: string, stateDelta: Record<string, unknown>): Promise<AdkSession> {
    return this.#json('PATCH', this.#path(id), { stateDelta })
  }

  deleteSession(id: string): Promise<unknown> {
    return this.#json('DELETE', this.#path(id))
  }

  run(run: AdkRun): Promise<AdkEvent[]> {
    return this.#json('POST', '/run', this.#runBody(run))
  }

  async *runSse(run: AdkRun, signal?: AbortSignal): AsyncGenerator<AdkEvent> {
    const response = await this.#fetch('POST', '/run_sse', this.#runBody(run), signal)
    const decoder = new TextDecoder()
    let waiting = ''
    for await (const bytes of response.body ?? []) {
      waiting += decoder.decode(bytes, { stream: true })
      const frames = waiting.split('\n\n')
      waiting = frames.pop() ?? ''
      for (const frame of frames) {
        if (!frame.startsWith('data: ')) continue
        const event = JSON.parse(frame.slice('data: '.length)) as AdkEvent & { error?: string }
        if (event.error) throw new AdkClientError(200, { error: event.error })
        yield event
      }
    }
  }

  #runBody({ sessionId, text, parts, streaming, stateDelta }: AdkRun): object {
    const newMessage = { role: 'user', parts: parts ?? [{ text }] }
    const { appName, userId } = this
    return { appName, userId, sessionId, newMessage, streaming, stateDelta }
  }

  #path(id?: string): string {
    const sessions = `/apps/${encodeURIComponent(this.appName)}/users/${encodeURIComponent(this.userId)}/sessions`
    return id === undefined ? sessions : `${sessions}/${encodeURIComponent(id)}`
  }

  async #json<T>(method: string, path: string, body?: object): Promise<T> {
    return (await (await this.#fetch(method, path, body)).json()) as T
  }

  async #fetch(method: string, path: string, body?: object, signal?: AbortSignal): Promise<Response> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...this.headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
      ...(signal ? { signal } : {}),
    })
    if (response.ok) return response
    throw new AdkClientError(response.status, (await response.json()) as AdkClientError['body'])
  }
}
