// The declarations that the entries of the package need, and no others: the compiler writes one file for each module.
import { readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The files that declarations import, with themselves. */
export function typesOf(entries) {
  const seen = new Set()
  const visit = file => {
    if (seen.has(file)) return
    seen.add(file)
    const code = readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '')
    for (const [, name] of code.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g))
      visit(join(dirname(file), name.replace(/\.js$/, '.d.ts')))
  }
  for (const entry of entries) visit(entry)
  return seen
}

/** Removes the declarations of a folder that no entry needs, and folders that are empty then. */
export function pruneTypes(folder, entries) {
  const needed = typesOf(entries)
  const visit = place => {
    for (const entry of readdirSync(place, { withFileTypes: true })) {
      const path = join(place, entry.name)
      if (entry.isDirectory()) visit(path)
      else if (path.endsWith('.d.ts') && !needed.has(path)) rmSync(path)
    }
    if (place !== folder && readdirSync(place).length === 0) rmdirSync(place)
  }
  visit(folder)
}
