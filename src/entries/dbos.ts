/** `lango/dbos`: the tables of DBOS, for `engine: 'dbos'`. Needs the package `@dbos-inc/dbos-sdk`. */
export { type MigrateDbosOptions, migrateDbos } from '../engine/dbos.js'
export type { DbosOptions, DbosQueues, EngineOption } from '../engine/engine-options.js'
export { AgentError, type AgentErrorCode } from '../errors.js'
