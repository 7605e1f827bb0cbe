import { AgentError } from '../errors.js'
import type { SessionKey } from '../session/message.js'
import { nameOf } from './hold-lease.js'

export function sessionNotFound(key: SessionKey): AgentError {
  return new AgentError('session-not-found', `No ${nameOf(key)} exists: create it first`, {
    details: { ...key },
  })
}

export function sessionExists(key: SessionKey): AgentError {
  return new AgentError(
    'session-exists',
    `The ${nameOf(key)} already exists: load it, or choose another id`,
    {
      details: { ...key },
    },
  )
}

export function leaseLost(key: SessionKey, fence: number): AgentError {
  return new AgentError(
    'lease-lost',
    `Writing to ${nameOf(key)} was refused: the lease with fence ${fence} has expired or was released. ` +
      'Stop this run, acquire a new lease and load the session again',
    { details: { ...key, fence } },
  )
}

export function sessionBusy(key: SessionKey): AgentError {
  return new AgentError(
    'session-busy',
    `Writing to ${nameOf(key)} was refused: another writer holds its lease. Acquire the lease and pass its fence`,
    { retryable: true, details: { ...key } },
  )
}

export function throughSeqOutOfRange(throughSeq: number, total: number): AgentError {
  return new AgentError(
    'invalid-argument',
    `throughSeq is ${throughSeq}, but the session has ${total} messages: pass a number from 1 to ${total}`,
    { details: { field: 'throughSeq' } },
  )
}

export function noSuchRun(runId: string): AgentError {
  return new AgentError('run-not-found', `There is no run "${runId}", or its records were pruned.`)
}

/** A process that stalled continues after another process has ended its run. */
export function runHasEnded(runId: string): AgentError {
  return new AgentError(
    'run-interrupted',
    `Run "${runId}" has already ended, so the event was not stored: start a new run`,
  )
}

export function runOfAnotherSession(runId: string): AgentError {
  return new AgentError(
    'invalid-argument',
    `runId "${runId}" belongs to another session: run ids must be unique, so use another`,
    {
      details: { field: 'runId' },
    },
  )
}

/** A change of a tool call that is not in the ledger of the session. */
export function callWithoutFacts(runId: string, id: string): AgentError {
  return new AgentError(
    'invalid-argument',
    `Tool call "${id}" of run "${runId}" is not in the ledger of the session: pass \`call\` with a new call`,
    { details: { field: 'calls', runId, id } },
  )
}

export function partMissing(runId: string, step: number): AgentError {
  return new AgentError(
    'store-corrupt',
    `The request of step ${step} of run "${runId}" is incomplete: restore the database from a backup, or prune the run`,
    { details: { runId, step } },
  )
}

/** What refused a write has changed by now. */
export function storeIsBusy({ sessionId }: SessionKey): AgentError {
  return new AgentError(
    'store-unavailable',
    `A write to session "${sessionId}" was refused, and the reason is gone: try again.`,
    { retryable: true },
  )
}

export function storeClosed(): AgentError {
  return new AgentError('store-unavailable', 'The store is closed: open it again before using it')
}

/** Only a store in a file can be copied to a file. */
export function cannotBackUp(driver: keyof typeof INSTEAD_OF_BACKUP): AgentError {
  return new AgentError('unsupported', `This store cannot be copied to a file. ${INSTEAD_OF_BACKUP[driver]}`)
}

const INSTEAD_OF_BACKUP = {
  memory: 'It is in memory: export its sessions, or use a SQLite file (sqlite:./lango.db)',
  postgres: 'Use pg_dump, or base backups and WAL archiving',
}
