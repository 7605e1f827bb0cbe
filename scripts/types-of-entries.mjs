// The declarations that the entries of the package need, and no others: the compiler writes one file for each module.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** Copies those of the entries, which are named as in `types`; `change` is applied to each text. */
export function copyTypes(types, folder, entries, change = text => text) {
  for (const file of typesOf(entries.map(name => join(types, name)))) {
    const target = join(folder, relative(types, file))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, change(readFileSync(file, 'utf8')))
  }
}

/** The files that declarations import, with themselves. */
function typesOf(entries) {
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
