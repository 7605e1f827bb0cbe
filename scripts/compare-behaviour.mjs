// Does another checkout behave alike? Runs one program on the built packages of both and compares bodies on the
// wire, repairs, run events, inspections, stored rows and the JSON of the command line. Keys, codes, types, counts and bodies
// must be equal; sentences for people may differ and are listed apart.
//
//     node scripts/compare-behaviour.mjs <old> <new> [--json] [--built]
//
// Both are folders with a checkout and its node_modules. `--built` takes their dist/ as it is; otherwise
// both are built first. Exits with 1 when the structure differs.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'

const FIXTURE = new URL('../test/fixtures/malformed-histories.ts', import.meta.url)
const RECORDER = fileURLToPath(new URL('record-behaviour.mjs', import.meta.url))
/** Where sentences for people occur; never in a body or a stored row. */
const SENTENCE_KEYS = new Set([
  'message',
  'detail',
  'description',
  'hint',
  'advice',
  'fix',
  'note',
  'summary',
  'label',
  'keyHint',
])
const SENTENCE_PARTS = new Set(['repaired', 'events', 'inspected', 'cli'])
const NONE = new Set()
/** The name of an entry that is a row of the table of histories. */
const TABLE_ROW = /^[^/]+\/\d+ /
const TIMED_KEYS = /(Ms|_at|At|timestamp|Time|time|updated_hour|cursor|port)$/

/** The differences of two records: `structure` must be empty, `words` need not. */
export function compareRecords(old, now) {
  const structure = []
  const words = []
  const ids = [old, now].map(shortIds)
  for (const part of new Set([...Object.keys(old), ...Object.keys(now)])) {
    const report = (path, before, after) => {
      const isSentence = SENTENCE_PARTS.has(part) && isForPeople(path, before, after)
      ;(isSentence ? words : structure).push({ path: `${part}${path}`, before, after })
    }
    for (const name of new Set([...Object.keys(old[part] ?? {}), ...Object.keys(now[part] ?? {})])) {
      const [before, after] = [old, now].map((record, index) =>
        normalize(record[part]?.[name], TABLE_ROW.test(name) ? NONE : ids[index]),
      )
      compareValues(before, after, `.${name}`, report)
    }
  }
  return { structure, words }
}

function compareValues(before, after, path, report) {
  if (Object.is(before, after)) return
  if (!isObject(before) || !isObject(after) || Array.isArray(before) !== Array.isArray(after)) {
    report(path, before, after)
    return
  }
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  for (const key of keys) compareValues(before[key], after[key], `${path}.${key}`, report)
  // A body is bytes: the order of its fields is part of it, and providers' caches depend on it.
  const [old, now] = [Object.keys(before), Object.keys(after)]
  const isSameSet = old.length === keys.size && now.length === keys.size
  if (isSameSet && old.join() !== now.join()) report(`${path} (order of keys)`, old.join(), now.join())
}

function isObject(value) {
  return typeof value === 'object' && value !== null
}

function isForPeople(path, before, after) {
  if (typeof before !== 'string' || typeof after !== 'string') return false
  const key = path.split('.').findLast(name => !/^\d+$/.test(name))
  return SENTENCE_KEYS.has(key) && (before.includes(' ') || after.includes(' '))
}

const MINTED =
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b(call|toolu|fc|rs|msg|resp|adk|chatcmpl|gen)[_-][A-Za-z0-9_-]{6,}|\b[0-9a-f]{32,}\b/g
const OPAQUE = /^(?=.*[0-9])(?=.*[A-Z])[A-Za-z0-9+/=_:.-]{24,}$/
const MOMENT = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z| UTC)?/g

/** Ids generated during the run: they are short, so they are recognised by their position. */
const ID_KEY = /(^id|_id|Id|Ids)$/
const SHORT_ID = /\b[A-Za-z0-9]{8,24}\b/g

/**
 * What differs between any two runs gets a name by the order in which it first occurs. A history of the table
 * brings its ids with it, so nothing short is renamed in it.
 */
function normalize(value, short) {
  const names = new Map()
  const named = text => {
    if (!names.has(text)) names.set(text, `<${names.size + 1}>`)
    return names.get(text)
  }
  const visitText = (text, key) => {
    if (TIMED_KEYS.test(key) && !text.includes(' ')) return '<time>'
    if (OPAQUE.test(text)) return named(text)
    const plain = text
      .replaceAll(/127\.0\.0\.1:\d+/g, '<server>')
      .replaceAll(MOMENT, '<time>')
      .replaceAll(/\b\d\d:\d\d(:\d\d)?\b/g, '<time>')
      .replaceAll(MINTED, named)
    return plain.replaceAll(SHORT_ID, word => (short.has(word) ? named(word) : word))
  }
  const visit = (item, key) => {
    if (typeof item === 'number' && (TIMED_KEYS.test(key) || item > 1.5e12)) return '<number>'
    if (typeof item === 'string') return visitText(item, key)
    if (!isObject(item)) return item
    if (Array.isArray(item)) return item.map(entry => visit(entry, key))
    return Object.fromEntries(
      Object.entries(item).map(([name, entry]) => [visitText(name, ''), visit(entry, name)]),
    )
  }
  return visit(value, '')
}

/** The short ids that a record made, anywhere in it: a mapped id is an id on the wire and part of a receipt. */
function shortIds(record) {
  const found = new Set()
  const visit = (item, key) => {
    if (typeof item === 'string') {
      if (ID_KEY.test(key) && item.replace(SHORT_ID, '') === '') found.add(item)
    } else if (isObject(item)) {
      for (const [name, entry] of Object.entries(item)) visit(entry, Array.isArray(item) ? key : name)
    }
  }
  for (const entries of Object.values(record))
    for (const [name, entry] of Object.entries(entries)) if (!TABLE_ROW.test(name)) visit(entry, '')
  return found
}

/** The table of malformed histories, which imports nothing but types. */
async function readHistories(folder) {
  const { outputText } = ts.transpileModule(readFileSync(FIXTURE, 'utf8'), {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
    },
  })
  const file = join(folder, 'histories.mjs')
  writeFileSync(file, outputText)
  const { MALFORMED_HISTORIES } = await import(pathToFileURL(file).href)
  const histories = MALFORMED_HISTORIES.map(({ row, title, history }) => ({
    name: `${row} ${title}`,
    history,
  }))
  const list = join(folder, 'histories.json')
  writeFileSync(list, JSON.stringify(histories))
  return list
}

function recordOf(checkout, { folder, histories, name }) {
  const output = join(folder, `${name}.json`)
  const { status } = spawnSync(process.execPath, [RECORDER, checkout, histories, output], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) throw new TypeError(`The behaviour of ${checkout} could not be recorded; is it built?`)
  return JSON.parse(readFileSync(output, 'utf8'))
}

function build(checkout) {
  const { status } = spawnSync(process.execPath, ['scripts/build.mjs'], {
    cwd: checkout,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) throw new TypeError(`${checkout} could not be built`)
}

function print({ structure, words }, counts) {
  const shown = value => (value === undefined ? '(absent)' : JSON.stringify(value)).slice(0, 200)
  for (const { path, before, after } of structure)
    console.log(`differs  ${path}\n  old ${shown(before)}\n  new ${shown(after)}`)
  for (const { path, before, after } of words)
    console.log(`words    ${path}\n  old ${shown(before)}\n  new ${shown(after)}`)
  console.log(`${counts}: ${structure.length} differences, ${words.length} in words only`)
}

async function main() {
  const places = process.argv.slice(2).filter(word => !word.startsWith('--'))
  if (places.length !== 2) {
    console.error('Usage: node scripts/compare-behaviour.mjs <old> <new> [--json] [--built]')
    return 2
  }
  const folder = mkdtempSync(join(tmpdir(), 'lango-compare-'))
  try {
    if (!process.argv.includes('--built')) for (const place of new Set(places)) build(place)
    const histories = await readHistories(folder)
    const [old, now] = places.map((place, index) => recordOf(place, { folder, histories, name: `${index}` }))
    const differences = compareRecords(old, now)
    const counts = Object.entries(now)
      .map(([part, entries]) => `${part} ${Object.keys(entries).length}`)
      .join(', ')
    if (process.argv.includes('--json')) console.log(JSON.stringify(differences, null, 2))
    else print(differences, counts)
    return differences.structure.length > 0 ? 1 : 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main()
