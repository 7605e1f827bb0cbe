// Writes docs/api.md from the entry points: every exported name with its declaration and its comment.
// `node scripts/build-api-docs.mjs`; a test compares the result. Only the syntax is read, which takes a moment.
import { writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { parse } from './sources.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const ENTRIES = [
  ['lango', 'src/index.ts', 'The runtime, tools and configuration.'],
  ['lango/adk', 'src/entries/adk.ts', 'The bridge in pieces, for ADK’s own `Runner`.'],
  [
    'lango/provider',
    'src/entries/provider.ts',
    'Any model behind one contract, and the repair of histories.',
  ],
  ['lango/store', 'src/entries/store.ts', 'Sessions and their stores.'],
  ['lango/client', 'src/entries/client.ts', 'The typed client of the server.'],
  ['lango/dbos', 'src/entries/dbos.ts', 'DBOS as the engine of runs.'],
  [
    'lango/testing',
    'src/entries/testing.ts',
    'A scripted model, and fake servers that enforce the real rules.',
  ],
]

/** The page. */
export function renderApiDocs(root = ROOT) {
  const trees = new Map()
  const read = file => {
    if (!trees.has(file)) trees.set(file, parse(root, file))
    return trees.get(file)
  }
  const seen = new Map()
  const sections = ENTRIES.map(([name, file, about]) => {
    const exported = exportsOf(file, read).sort(
      (one, other) => rank(one) - rank(other) || compare(one.name, other.name),
    )
    const items = exported.map(item => {
      const key = `${item.file} ${item.name}`
      const first = seen.get(key)
      if (first !== undefined) return `### ${item.name}\n\nAs in \`${first}\`.\n`
      seen.set(key, name)
      return itemText(item)
    })
    return `## ${name}\n\n${about}\n\n${items.join('\n')}`
  })
  return `# API reference\n\nEvery name that the entry points export, generated from the sources by \`node scripts/build-api-docs.mjs\`. Examples stand in the comments that an editor shows, and in [Library](library.md).\n\n${sections.join('\n')}`
}

/** What an entry re-exports, each with the declaration that it leads to. */
function exportsOf(file, read) {
  return read(file).statements.flatMap(statement => {
    if (!ts.isExportDeclaration(statement) || !statement.moduleSpecifier) return []
    const target = posix.join(posix.dirname(file), statement.moduleSpecifier.text).replace(/\.js$/, '.ts')
    if (statement.exportClause && ts.isNamedExports(statement.exportClause))
      return statement.exportClause.elements.map(({ name, propertyName }) => {
        return found(name.text, (propertyName ?? name).text, target, read)
      })
    return [...declarationsIn(read(target)).keys()].map(name => found(name, name, target, read))
  })
}

/** A declaration; a file may itself pass on what another one declares. */
function found(name, own, file, read) {
  const nodes = declarationsIn(read(file)).get(own)
  if (nodes) return { name, file, nodes }
  for (const statement of read(file).statements) {
    const isExport = ts.isExportDeclaration(statement) || ts.isImportDeclaration(statement)
    if (!isExport || !statement.moduleSpecifier?.text.startsWith('.')) continue
    const bindings = ts.isExportDeclaration(statement)
      ? statement.exportClause
      : statement.importClause?.namedBindings
    const element = bindings?.elements?.find(each => each.name.text === own)
    if (!element) continue
    const target = posix.join(posix.dirname(file), statement.moduleSpecifier.text).replace(/\.js$/, '.ts')
    return found(name, (element.propertyName ?? element.name).text, target, read)
  }
  throw new Error(`${file} exports no ${own}: the entry is wrong, or build-api-docs.mjs cannot follow it.`)
}

/** The exported declarations of a file by name; overloads stand together. */
function declarationsIn(source) {
  const byName = new Map()
  const add = (name, node) => byName.set(name, [...(byName.get(name) ?? []), node])
  for (const statement of source.statements) {
    const isExported = ts.canHaveModifiers(statement)
      ? ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
      : false
    if (
      ts.isExportDeclaration(statement) &&
      statement.exportClause &&
      ts.isNamedExports(statement.exportClause)
    ) {
      for (const { name } of statement.exportClause.elements)
        if (!statement.moduleSpecifier) add(name.text, statement)
    }
    if (!isExported) continue
    if (ts.isVariableStatement(statement))
      for (const { name } of statement.declarationList.declarations) add(name.getText(), statement)
    else if (statement.name) add(statement.name.text, statement)
  }
  return byName
}

function itemText({ name, nodes }) {
  const comment = commentOf(nodes[0])
  // An implementation behind overloads is not what callers see.
  const shown = nodes.length > 1 ? nodes.filter(node => !node.body) : nodes
  const code = (shown.length > 0 ? shown : nodes).map(declarationText).join('\n')
  return `### ${name}\n\n${comment ? `${comment}\n\n` : ''}\`\`\`text\n${code}\n\`\`\`\n`
}

/** The first part of a doc comment, without examples and tags. */
function commentOf(node) {
  const [doc] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc)
  const text = doc ? (ts.getTextOfJSDocComment(doc.comment) ?? '') : ''
  return text
    .replaceAll(/```.*?```/gs, '')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
}

const printer = ts.createPrinter({ removeComments: true })

/** A declaration without bodies, values and what is private. */
function declarationText(node) {
  const source = node.getSourceFile()
  const result = ts.transform(node, [context => root => strip(root, context)])
  const printed = printer.printNode(ts.EmitHint.Unspecified, result.transformed[0], source)
  result.dispose()
  return shortened(printed.replace(/^export (default )?/, ''))
}

const MOST_LINES = 60

function shortened(text) {
  const lines = text.split('\n')
  return lines.length <= MOST_LINES
    ? text
    : `${lines.slice(0, MOST_LINES).join('\n')}\n… ${lines.length - MOST_LINES} more lines`
}

function strip(node, context) {
  const { factory } = context
  const visit = each => {
    if (ts.isFunctionDeclaration(each))
      return factory.updateFunctionDeclaration(
        each,
        each.modifiers,
        each.asteriskToken,
        each.name,
        each.typeParameters,
        each.parameters,
        each.type,
        undefined,
      )
    if (ts.isMethodDeclaration(each))
      return factory.updateMethodDeclaration(
        each,
        each.modifiers,
        each.asteriskToken,
        each.name,
        each.questionToken,
        each.typeParameters,
        each.parameters,
        each.type,
        undefined,
      )
    if (ts.isConstructorDeclaration(each))
      return factory.updateConstructorDeclaration(each, each.modifiers, each.parameters, undefined)
    if (ts.isGetAccessorDeclaration(each))
      return factory.updateGetAccessorDeclaration(
        each,
        each.modifiers,
        each.name,
        each.parameters,
        each.type,
        undefined,
      )
    if (ts.isClassDeclaration(each)) {
      const members = each.members.filter(isPublic).map(visit)
      return factory.updateClassDeclaration(
        each,
        each.modifiers,
        each.name,
        each.typeParameters,
        each.heritageClauses,
        members,
      )
    }
    if (ts.isPropertyDeclaration(each))
      return factory.updatePropertyDeclaration(
        each,
        each.modifiers,
        each.name,
        each.questionToken,
        each.type,
        undefined,
      )
    if (ts.isVariableDeclaration(each))
      return factory.updateVariableDeclaration(each, each.name, undefined, each.type, undefined)
    return ts.visitEachChild(each, visit, context)
  }
  return visit(node)
}

function isPublic(member) {
  if (member.name && ts.isPrivateIdentifier(member.name)) return false
  const modifiers = ts.canHaveModifiers(member) ? (ts.getModifiers(member) ?? []) : []
  return !modifiers.some(
    ({ kind }) => kind === ts.SyntaxKind.PrivateKeyword || kind === ts.SyntaxKind.ProtectedKeyword,
  )
}

/** Functions first, then classes and values, then types. */
function rank({ nodes: [node] }) {
  if (ts.isFunctionDeclaration(node)) return 0
  if (ts.isClassDeclaration(node)) return 1
  return ts.isVariableStatement(node) ? 2 : 3
}

function compare(one, other) {
  return one < other ? -1 : 1
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(join(ROOT, 'docs/api.md'), renderApiDocs())
