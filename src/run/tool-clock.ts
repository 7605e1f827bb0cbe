import type { RunEventBody } from './run-event.js'

/** How long tools took: from call to result, without the time that a person took to allow the call. */
export class ToolClock {
  private readonly started = new Map<string, number>()
  private readonly asked = new Map<string, number>()

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** The event, with the time that its tool took where it is a result. */
  timed(body: RunEventBody): RunEventBody {
    switch (body.type) {
      case 'tool-call':
        this.started.set(body.id, this.now())
        return body
      case 'approval-request':
        this.asked.set(body.id, this.now())
        return body
      case 'approval-answer': {
        const [started, asked] = [this.started.get(body.id), this.asked.get(body.id)]
        if (started !== undefined && asked !== undefined)
          this.started.set(body.id, started + this.now() - asked)
        return body
      }
      case 'tool-result': {
        const started = this.started.get(body.id)
        if (started === undefined) return body
        this.started.delete(body.id)
        return { ...body, durationMs: Math.max(0, Math.round(this.now() - started)) }
      }
      case 'run-start':
      case 'text-delta':
      case 'reasoning-delta':
      case 'agent-transfer':
      case 'turn-warning':
      case 'wrap-up':
      case 'repair':
      case 'history-cut':
      case 'usage':
      case 'error':
      case 'run-finish':
        return body
    }
  }
}
