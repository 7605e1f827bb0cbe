// Every switch over a discriminated union of our own must fail to compile when the union gets a new member: it has no default and
// its function must return a value, or its default says `value satisfies never`, or its default hands the rest to
// a function that takes no more than the rest. Unions of vendors' SDKs are left out: they grow without us.
import { relative, sep } from 'node:path'
import ts from 'typescript'
import { openProjects, ownFiles } from './open-projects.mjs'

/** One sentence for each switch that a new member would pass unseen, and how many switches were looked at. */
export function checkSwitches(root, programs = openProjects(root)) {
  const seen = new Map()
  for (const program of programs) {
    for (const file of ownFiles(root, program)) {
      if (seen.has(file.fileName)) continue
      seen.set(file.fileName, switchesOf(root, program.getTypeChecker(), file))
    }
  }
  const switches = [...seen.values()].flat()
  return {
    switches: switches.length,
    problems: switches.flatMap(({ problem }) => (problem ? [problem] : [])),
  }
}

function switchesOf(root, checker, file) {
  const found = []
  const visit = node => {
    if (ts.isSwitchStatement(node)) {
      const type = checker.getTypeAtLocation(node.expression)
      if (isOwnUnion(checker, node.expression, type))
        found.push({ problem: judge(root, checker, node, type) })
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

/** The discriminant of a union of objects, if the union is declared here. */
function isOwnUnion(checker, expression, type) {
  if (!ts.isPropertyAccessExpression(expression)) return false
  const members = type.isUnion() ? type.types : []
  if (members.length < 2 || !members.every(member => member.isStringLiteral())) return false
  const owner = checker.getTypeAtLocation(expression.expression)
  if (!owner.isUnion()) return false
  const declared = owner.types.flatMap(part => (part.aliasSymbol ?? part.symbol)?.declarations ?? [])
  return declared.every(node => !node.getSourceFile().fileName.includes('/node_modules/'))
}

function judge(root, checker, node, type) {
  const name = relative(root, node.getSourceFile().fileName).split(sep).join('/')
  const line = node.getSourceFile().getLineAndCharacterOfPosition(node.getStart()).line + 1
  const at = `open-switch: ${name}:${line}: switch (${node.expression.getText()})`
  const clauses = node.caseBlock.clauses
  const fallback = clauses.find(ts.isDefaultClause)
  const cases = new Set(
    clauses.filter(ts.isCaseClause).map(({ expression }) => literalOf(checker, expression)),
  )
  const missing = type.types.map(({ value }) => value).filter(value => !cases.has(value))
  if (fallback) {
    if (saysNever(fallback) || handsOnTheRest(checker, node, fallback)) return undefined
    return `${at} has a default that takes ${missing.join(', ') || 'nothing'} and every new member; name the cases and end it with \`satisfies never\``
  }
  if (missing.length > 0) return `${at} passes over ${missing.join(', ')}`
  return mustReturn(checker, node)
    ? undefined
    : `${at} passes over a new member; end it with \`satisfies never\``
}

function literalOf(checker, expression) {
  const type = checker.getTypeAtLocation(expression)
  return type.isStringLiteral() ? type.value : undefined
}

function saysNever(clause) {
  return contains(
    clause,
    node => ts.isSatisfiesExpression(node) && node.type.kind === ts.SyntaxKind.NeverKeyword,
  )
}

/** The default passes the narrowed value to a parameter that would not take every member. */
function handsOnTheRest(checker, node, clause) {
  const subject = ts.isPropertyAccessExpression(node.expression)
    ? node.expression.expression
    : node.expression
  const whole = checker.getTypeAtLocation(subject)
  return contains(clause, call => {
    if (!ts.isCallExpression(call)) return false
    const index = call.arguments.findIndex(argument => argument.getText() === subject.getText())
    const parameter = checker.getResolvedSignature(call)?.parameters[index]
    if (index < 0 || !parameter) return false
    return !checker.isTypeAssignableTo(whole, checker.getTypeOfSymbolAtLocation(parameter, call))
  })
}

/** Without a case the end of the function would be reached, which its return type does not allow. */
function mustReturn(checker, node) {
  let outer = node.parent
  while (outer && !ts.isFunctionLike(outer)) outer = outer.parent
  if (!outer?.type) return false
  const signature = checker.getSignatureFromDeclaration(outer)
  let type = checker.getReturnTypeOfSignature(signature)
  if (outer.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword))
    type = checker.getAwaitedType(type) ?? type
  const isLast = node.parent === outer.body && outer.body.statements.at(-1) === node
  const parts = type.isUnion() ? type.types : [type]
  return (
    isLast &&
    !parts.some(({ flags }) => flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Void | ts.TypeFlags.Any))
  )
}

function contains(node, test) {
  return test(node) || ts.forEachChild(node, child => contains(child, test)) === true
}
