/** Runs in the log, and whoever else watches runs. */
import { AgentError, messageOf } from '../errors.js'
import type { Logger } from '../logger.js'
import type { RunEvent } from '../run/run-event.js'

export type RunObserver = (event: RunEvent) => void

/** Hands every event to all observers. One that fails is reported and does not disturb the run. */
export function joinObservers(observers: readonly RunObserver[], logger: Logger): RunObserver {
  return event => {
    for (const observe of observers) {
      try {
        observe(event)
      } catch (error) {
        logger.warn('An observer of runs failed', { runId: event.runId, error: messageOf(error) })
      }
    }
  }
}

/** Writes the course of a run: its start and end for everyone, its steps for whoever looks closer. No content. */
export function logRuns(logger: Logger): RunObserver {
  return event => {
    const line = lineOf(event)
    if (!line) return
    const [level, message, fields] = line
    logger[level](message, { sessionId: event.sessionId, runId: event.runId, ...fields })
  }
}

type Line = [level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: Record<string, unknown>]

function lineOf(event: RunEvent): Line | undefined {
  switch (event.type) {
    case 'run-start':
      return ['info', 'A run starts', { agent: event.agent, model: event.model }]
    case 'tool-call':
      return ['debug', 'A tool is called', { author: event.author, tool: event.name, callId: event.id }]
    case 'tool-result': {
      const { name: tool, id: callId, isError } = event
      return ['debug', isError ? 'A tool failed' : 'A tool answered', { tool, callId, isError }]
    }
    case 'agent-transfer':
      return ['debug', 'A run goes to another agent', { from: event.from, to: event.to }]
    case 'repair': {
      const steps = [...new Set(event.repairs.map(({ step }) => step))]
      const { model, profile, repairs } = event
      return ['info', 'A history was repaired', { model, profile, repairs: repairs.length, steps }]
    }
    case 'history-cut': {
      const { shortened, ...cut } = event.cut
      return ['debug', 'A history was cut', { ...cut, shortened: shortened.length }]
    }
    case 'wrap-up':
      return ['warn', 'A run has reached its limit', { reason: event.reason, turns: event.turns }]
    case 'approval-request':
      return ['info', 'A tool asks first', { tool: event.name, callId: event.id }]
    case 'approval-answer':
      return ['info', 'A tool was answered', { tool: event.name, callId: event.id, outcome: event.answer }]
    case 'usage':
      return ['debug', 'A model answered', { author: event.author, model: event.model, usage: event.usage }]
    case 'error': {
      const { code, retryable, message } = event.error
      // What is thrown inside tools and ADK may quote anything; our own errors never quote a prompt.
      const isOurs = event.error instanceof AgentError && code !== 'internal'
      return ['error', 'A run failed', { code, retryable, ...(isOurs ? { reason: message } : {}) }]
    }
    case 'run-finish': {
      const { finishReason, turns, delegations, usage } = event
      return ['info', 'A run ends', { finishReason, turns, delegations, usage }]
    }
    case 'text-delta':
    case 'reasoning-delta':
    case 'turn-warning':
      // Deltas are content, and the run loop logs the warning itself.
      return undefined
    default:
      event satisfies never
      return undefined
  }
}
