import { type SchemaVersion, VERSIONS } from '../../src/store/schema.js'

/** A change of the schema as a later release may make it. It counts how often it was applied to each session. */
const invented: SchemaVersion = ({ integer }) => [
  `ALTER TABLE lango_sessions ADD COLUMN applied ${integer} NOT NULL DEFAULT 0`,
  'UPDATE lango_sessions SET applied = applied + 1',
  'CREATE INDEX lango_sessions_applied ON lango_sessions (applied)',
]

/** The versions that the invented release knows. */
export const WITH_INVENTED: readonly SchemaVersion[] = [...VERSIONS, invented]
