/**
 * Writes `../histories/mastra/mastra.db`: every scene is played by Mastra itself, in a process of its own.
 *
 *   node --import tsx test/clients/mastra/record.ts
 */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { APPROVAL_SCENES, SCENES } from '../histories/support/scenes.js'
import { playMastra } from './play.js'

const folder = mkdtempSync(join(tmpdir(), 'lango-mastra-'))
const file = join(folder, 'mastra.db')
const KEPT = ['mastra_threads', 'mastra_messages', 'mastra_resources']

const scenes = [...SCENES, ...APPROVAL_SCENES].filter(
  ({ name, searches }) => !searches && name !== 'an output of 300 kB',
)
for (const scene of scenes) console.log(scene.name, await playMastra(`file:${file}`, [scene]))
const database = new DatabaseSync(file)
const tables = database.prepare("select name from sqlite_master where type = 'table'").all()
for (const { name } of tables)
  if (!KEPT.includes(String(name)) && !/^sqlite_/.test(String(name))) database.exec(`drop table "${name}"`)
database.exec('pragma journal_mode = delete; vacuum')
database.close()
copyFileSync(file, new URL('../histories/mastra/mastra.db', import.meta.url))
rmSync(folder, { recursive: true })
