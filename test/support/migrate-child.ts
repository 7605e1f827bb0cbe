/** Migrates the database of a URL, its argument, as a release with one more version does. */
import { migrate } from '../../src/store/migrations.js'
import { parseStoreUrl } from '../../src/store/open-store.js'
import { openPostgres } from '../../src/store/postgres.js'
import { openSqlite } from '../../src/store/sqlite.js'
import { WITH_INVENTED } from './invented-version.js'

const location = parseStoreUrl(process.argv[2] ?? '')
if (location.driver === 'memory') throw new TypeError('no other process can open memory:')
const database = location.driver === 'sqlite' ? await openSqlite(location) : await openPostgres(location)
await migrate(database, WITH_INVENTED)
await database.close()
