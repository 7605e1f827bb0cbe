/** Locks the SQLite file that the argument names, as another writer would, until it is killed. */
import { DatabaseSync } from '@photostructure/sqlite'

const connection = new DatabaseSync(process.argv[2] ?? '')
connection.exec(process.argv[3] ?? 'BEGIN IMMEDIATE')
process.stdout.write('locked\n')
setTimeout(() => connection.close(), 600_000)
