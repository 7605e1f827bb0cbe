import type { Event } from '../adk/sdk.js'

interface PendingCall {
  id: string
  name: string
  author: string
  invocationId: string
  branch?: string
}

/** What a call is answered with when its run ends before the tool does. */
export const INTERRUPTED = '[no response available]'

/** Remembers which calls of a run have no answer yet, so that a run never ends with an open call. */
export class PendingCalls {
  private readonly calls = new Map<string, PendingCall>()

  observe(event: Event): void {
    if (event.partial) return
    const longRunning = new Set(event.longRunningToolIds ?? [])
    for (const { functionCall, functionResponse } of event.content?.parts ?? []) {
      if (functionResponse?.id) this.calls.delete(functionResponse.id)
      if (functionCall?.id && !longRunning.has(functionCall.id)) {
        this.calls.set(functionCall.id, {
          id: functionCall.id,
          name: functionCall.name ?? '',
          author: event.author ?? '',
          invocationId: event.invocationId,
          ...(event.branch === undefined ? {} : { branch: event.branch }),
        })
      }
    }
  }

  /** The parts that answer every open call, with the author and invocation they belong to. */
  close(
    reason: string,
  ): { author: string; invocationId: string; branch?: string; parts: object[] } | undefined {
    const open = [...this.calls.values()]
    const first = open[0]
    if (!first) return undefined
    this.calls.clear()
    return {
      author: first.author,
      invocationId: first.invocationId,
      ...(first.branch === undefined ? {} : { branch: first.branch }),
      parts: open.map(call => ({
        functionResponse: { id: call.id, name: call.name, response: { error: `${INTERRUPTED} ${reason}` } },
      })),
    }
  }
}
