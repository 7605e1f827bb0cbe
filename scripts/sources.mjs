// The product's own files, as the structure checks see them: every .ts and .tsx below src and web/src that is
// not a test and not a declaration file, with what it imports.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import ts from 'typescript'

/** The names of the files below the given folders of `root`, with forward slashes, sorted. */
export function listSources(root, folders = ['src', 'web/src']) {
  return folders
    .filter(folder => existsSync(join(root, folder)))
    .flatMap(folder =>
      readdirSync(join(root, folder), { recursive: true }).map(name =>
        posix.join(folder, String(name).split(sep).join('/')),
      ),
    )
    .filter(name => /\.tsx?$/.test(name) && !/\.(test|d)\.tsx?$/.test(name))
    .filter(name => !name.includes('/node_modules/'))
    .sort()
}

/** One file as a syntax tree with parents. */
export function parse(root, name) {
  return ts.createSourceFile(name, readFileSync(join(root, name), 'utf8'), ts.ScriptTarget.Latest, true)
}

/** The room of a file: its folder below src or web/src, or the whole name for a file that lies loose there. */
export function roomOf(name) {
  const [first, second, third] = name.split('/')
  if (first === 'web') return 'web'
  return third === undefined ? name : `${first}/${second}`
}

/** Every module specifier that a file names: imports, re-exports, `import()` and `import('…')` in a type. */
export function specifiersOf(source) {
  const found = []
  const visit = node => {
    const literal = specifierIn(node)
    if (literal !== undefined && ts.isStringLiteralLike(literal)) found.push(literal.text)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function specifierIn(node) {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
    return node.arguments[0]
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) return node.argument.literal
  return undefined
}

/** For each file, the set of the listed files that it imports. Packages and data files are left out. */
export function importGraph(root, names, parsed = name => parse(root, name)) {
  const known = new Set(names)
  return new Map(
    names.map(name => {
      const targets = specifiersOf(parsed(name))
        .filter(specifier => specifier.startsWith('.'))
        .map(specifier => resolveIn(known, posix.join(posix.dirname(name), specifier)))
        .filter(target => target !== undefined && target !== name)
      return [name, new Set(targets)]
    }),
  )
}

function resolveIn(known, path) {
  const bare = path.replace(/\.(js|jsx|ts|tsx)$/, '')
  return [`${bare}.ts`, `${bare}.tsx`].find(name => known.has(name))
}
