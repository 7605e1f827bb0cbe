// What the layout must hold, as numbers: how many files there are, how many of them have one importer only,
// what lies loose in src/, import loops, the length of functions (also where they return JSX), and the walk of a
// message. The numbers are recorded in structure.json and may only fall. The share of files with one importer is counted
// and not limited: a limit makes people join files that hold different things.
//
// How they are counted. A file is a .ts or .tsx below src that is not a test; its importers are the other such
// files of src and web/src that name it in an import, a re-export, `import()` or `import('…')` in a type. Entry
// points (no importer) count among the files. `node scripts/check-structure.mjs --json` prints the figures and
// also the files with one importer.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { importGraph, listSources, parse } from './sources.mjs'

const RECORD = 'scripts/structure.json'
export const WALK_PAGE = 'docs/architecture.md'
const MAX_FUNCTION_LINES = 70
/** How far a figure may stay below its record before the record has to follow. */
const SLACK = { files: 5, walk: 0 }

/** The figures of a tree, and what is wrong with them, one sentence each. */
export function checkStructure(root, record = readRecord(root)) {
  const { figures: counted, details } = measureStructure(root)
  const walk = listedWalk(root)
  const figures = { ...counted, walk: walk.length }
  const problems = [
    ...againstRecord(figures, record),
    ...looseProblems(details.loose, record.loose ?? []),
    ...details.cycles.map(cycle => `import-loop: ${cycle.join(' → ')}`),
    ...details.longFunctions.map(
      ({ file, line, name, lines }) =>
        `function-too-long: ${file}:${line}: ${name} has ${lines} lines, ${MAX_FUNCTION_LINES} are allowed`,
    ),
    ...walkProblems(walk, details.graph),
  ]
  return { figures, details, problems }
}

/** Counts, without judging. */
export function measureStructure(root) {
  const names = listSources(root)
  const trees = new Map(names.map(name => [name, parse(root, name)]))
  const graph = importGraph(root, names, name => trees.get(name))
  const importers = countImporters(graph)
  const files = names.filter(name => name.startsWith('src/'))
  const single = files.filter(name => importers.get(name) === 1)
  const loose = files.filter(name => name.split('/').length === 2).map(name => name.slice('src/'.length))
  const cycles = findCycles(graph)
  const longFunctions = names.flatMap(name => longFunctionsOf(trees.get(name)))
  const figures = {
    files: files.length,
    oneImporterPercent: files.length === 0 ? 0 : Math.round((single.length / files.length) * 1000) / 10,
    loose: loose.length,
    cycles: cycles.length,
  }
  return { figures, details: { single, loose, cycles, longFunctions, graph } }
}

function countImporters(graph) {
  const counts = new Map()
  for (const targets of graph.values())
    for (const target of targets) counts.set(target, (counts.get(target) ?? 0) + 1)
  return counts
}

/** A figure above its record is a step back; one well below it asks for a lower record, so that it stays. */
function againstRecord(figures, record) {
  return Object.keys(SLACK).flatMap(name => {
    const [now, most] = [figures[name], record[name]]
    if (now === undefined || most === undefined) return []
    if (now > most) return [`${name}: ${now}, and the record in ${RECORD} is ${most}; it may only fall`]
    if (now < most - SLACK[name]) return [`${name}: ${now}, so lower the record of ${most} in ${RECORD}`]
    return []
  })
}

/** The list of files that lie in src/ itself is closed, in both directions. */
function looseProblems(loose, allowed) {
  return [
    ...loose
      .filter(name => !allowed.includes(name))
      .map(name => `loose-file: src/${name} is not on the closed list of files in src/; move it to its room`),
    ...allowed
      .filter(name => !loose.includes(name))
      .map(name => `loose-file: src/${name} is gone; take it off the list in ${RECORD}`),
  ]
}

/** Strongly connected groups of more than one file, by Tarjan's algorithm. */
function findCycles(graph) {
  const state = { index: 0, stack: [], seen: new Map(), low: new Map(), open: new Set(), groups: [] }
  for (const name of graph.keys()) if (!state.seen.has(name)) connect(name, graph, state)
  return state.groups.filter(group => group.length > 1)
}

function connect(name, graph, state) {
  state.seen.set(name, state.index)
  state.low.set(name, state.index)
  state.index += 1
  state.stack.push(name)
  state.open.add(name)
  for (const target of graph.get(name)) {
    if (!state.seen.has(target)) {
      connect(target, graph, state)
      state.low.set(name, Math.min(state.low.get(name), state.low.get(target)))
    } else if (state.open.has(target)) {
      state.low.set(name, Math.min(state.low.get(name), state.seen.get(target)))
    }
  }
  if (state.low.get(name) === state.seen.get(name)) state.groups.push(popGroup(name, state))
}

function popGroup(name, state) {
  const group = state.stack.splice(state.stack.lastIndexOf(name))
  for (const member of group) state.open.delete(member)
  return group.sort()
}

/**
 * Functions over the limit, from the first line of the function to its last, blank lines aside. Biome's rule counts
 * the line breaks before tokens; those between JSX elements belong to JSX text, so it counts a component short.
 */
function longFunctionsOf(source) {
  const found = []
  const visit = node => {
    if (ts.isFunctionLike(node) && node.body) {
      const lines = linesOf(source, node)
      if (lines > MAX_FUNCTION_LINES) {
        const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1
        found.push({ file: source.fileName, line, name: nameOf(node), lines })
      }
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function linesOf(source, node) {
  const text = source.text.slice(node.getStart(), node.getEnd())
  return text.split('\n').filter(line => line.trim() !== '').length
}

function nameOf(node) {
  if (node.name) return node.name.getText()
  return ts.isVariableDeclaration(node.parent) ? node.parent.name.getText() : '(a function without a name)'
}

/** The walk of a message as docs/architecture.md lists it, or nothing when there is no list. */
export function listedWalk(root) {
  const page = join(root, WALK_PAGE)
  const [, list] = (existsSync(page) ? readFileSync(page, 'utf8') : '').split(/<!-- \/?walk -->/)
  return list === undefined ? [] : [...list.matchAll(/`(src\/[^`]+)`/g)].map(([, name]) => name)
}

/** Whether the list is complete is measured by trace-walk.mjs; here it must name files that exist, each once. */
function walkProblems(walk, graph) {
  return walk.flatMap((name, index) => {
    if (!graph.has(name)) return [`walk: ${name} is listed in ${WALK_PAGE} and does not exist`]
    return walk.indexOf(name) < index ? [`walk: ${name} is listed twice in ${WALK_PAGE}`] : []
  })
}

function readRecord(root) {
  return JSON.parse(readFileSync(join(root, RECORD), 'utf8'))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const { figures, details, problems } = checkStructure(root)
  if (process.argv.includes('--json'))
    console.log(JSON.stringify({ ...figures, oneImporter: details.single }, null, 2))
  else
    console.log(
      Object.entries(figures)
        .map(([name, value]) => `${name} ${value}`)
        .join(', '),
    )
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(1)
}
