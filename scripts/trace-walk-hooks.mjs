// Module hooks of trace-walk.mjs: TypeScript files of the traced tree are compiled on load, and every function
// in them reports its file when it is called.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

let base = ''

export function initialize({ root }) {
  base = root
}

export async function resolve(specifier, context, next) {
  if (specifier.startsWith('.') && specifier.endsWith('.js') && context.parentURL?.startsWith(base)) {
    const url = new URL(`${specifier.slice(0, -'.js'.length)}.ts`, context.parentURL)
    if (existsSync(url)) return { url: url.href, format: 'module', shortCircuit: true }
  }
  return next(specifier, context)
}

export async function load(url, context, next) {
  if (!url.startsWith(base) || !url.endsWith('.ts')) return next(url, context)
  const fileName = fileURLToPath(url)
  const text = withReports(readFileSync(fileName, 'utf8'), url.slice(base.length))
  const { outputText } = ts.transpileModule(text, {
    fileName,
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
    },
  })
  return { format: 'module', source: outputText, shortCircuit: true }
}

/** Puts `globalThis.__walk?.('<file>')` at the beginning of every function. */
function withReports(text, name) {
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true)
  const report = `globalThis.__walk?.('${name}')`
  const edits = []
  const visit = node => {
    if (ts.isFunctionLike(node) && node.body) edits.push(...editsFor(node.body, report))
    ts.forEachChild(node, visit)
  }
  visit(source)
  // From the end, so that earlier places stay where they are; what belongs to one place keeps its order.
  edits.sort((one, other) => other.at - one.at || other.order - one.order)
  return edits.reduce((before, { at, added }) => before.slice(0, at) + added + before.slice(at), text)
}

function editsFor(body, report) {
  if (ts.isBlock(body)) return [{ at: startOf(body), added: `;${report};`, order: 0 }]
  return [
    { at: body.getStart(), added: `(${report}, `, order: 1 },
    { at: body.getEnd(), added: ')', order: 0 },
  ]
}

/** In a derived constructor nothing may come before `super()`. */
function startOf(block) {
  const call = block.statements.find(
    statement =>
      ts.isExpressionStatement(statement) &&
      ts.isCallExpression(statement.expression) &&
      statement.expression.expression.kind === ts.SyntaxKind.SuperKeyword,
  )
  return call ? call.getEnd() : block.getStart() + 1
}
