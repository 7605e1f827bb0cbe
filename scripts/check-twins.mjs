// Literals and patterns in two rooms: a rule that two rooms need has one home that both import. Counted
// are string literals and regular expressions of eight characters and more that occur in at least two rooms
// (folders of src, loose files of src, web). Not counted:
// - what the compiler compares already: a literal whose place is typed by a union that has it as a member;
// - names of modules, properties and types, and single plain words (`required`, `messages`);
// - names of the web: header fields, media types, URLs' schemes;
// - src/testing, whose strict servers check the product and may not share its code.
// What may occur twice for a reason, and how many others remain, is recorded in twins.json; the number may only fall.
import { existsSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import ts from 'typescript'
import { openProjects, ownFiles } from './open-projects.mjs'
import { roomOf } from './sources.mjs'

const RECORD = 'scripts/twins.json'
const SHORTEST = 8
/** How far the number may stay below its record before the record has to follow. */
const SLACK = 3
const PLAIN_WORD = /^[A-Z]?[a-z]+$/
const WEB_NAME =
  /^((application|text|image|audio|video)\/.*|(content|accept|cache|retry|user|last|x)-[a-z-]+|authorization|no-cache|127\.0\.0\.1)$/i

/** The literals in two rooms that are not allowed, and the problems with their number. */
export function checkTwins(root, record = readRecord(root), programs = openProjects(root)) {
  const twins = findTwins(root, programs)
  const allowed = record.allowed ?? {}
  const open = twins.filter(({ text }) => !(text in allowed))
  const gone = Object.keys(allowed).filter(text => !twins.some(twin => twin.text === text))
  const problems = gone.map(text => `twin: ${text} no longer stands in two rooms; take it off ${RECORD}`)
  if (open.length > record.most) {
    problems.push(
      `twins: ${open.length} literals stand in two rooms, and ${RECORD} records ${record.most}; give each one home`,
      ...open.map(({ text, rooms }) => `  ${text}: ${rooms.join(', ')}`),
    )
  } else if (open.length < record.most - SLACK) {
    problems.push(`twins: ${open.length} are left, so lower the record of ${record.most} in ${RECORD}`)
  }
  return { twins: open, problems }
}

function findTwins(root, programs) {
  const places = new Map()
  const seen = new Set()
  for (const program of programs) {
    const checker = program.getTypeChecker()
    for (const file of ownFiles(root, program)) {
      const name = relative(root, file.fileName).split(sep).join('/')
      if (seen.has(name) || name.startsWith('src/testing/')) continue
      seen.add(name)
      for (const text of literalsOf(checker, file)) {
        const rooms = places.get(text) ?? new Map()
        rooms.set(roomOf(name), [...(rooms.get(roomOf(name)) ?? []), name])
        places.set(text, rooms)
      }
    }
  }
  return [...places]
    .filter(([, rooms]) => rooms.size > 1)
    .map(([text, rooms]) => ({
      text,
      rooms: [...rooms.keys()].sort(),
      files: [...new Set([...rooms.values()].flat())],
    }))
    .sort((one, other) => other.files.length - one.files.length || (one.text < other.text ? -1 : 1))
}

function literalsOf(checker, file) {
  const found = []
  const visit = node => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return
    if (node.kind === ts.SyntaxKind.RegularExpressionLiteral && node.text.length >= SHORTEST)
      found.push(node.text)
    if (ts.isStringLiteralLike(node) && counts(checker, node)) found.push(JSON.stringify(node.text))
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

function counts(checker, node) {
  const { text, parent } = node
  if (text.length < SHORTEST || PLAIN_WORD.test(text) || WEB_NAME.test(text)) return false
  if (ts.isPropertyAssignment(parent) && parent.name === node) return false
  if (ts.isElementAccessExpression(parent)) return false
  if (ts.isJsxAttribute(parent) || ts.isBindingElement(parent)) return false
  if (ts.isCallExpression(parent) && parent.expression.kind === ts.SyntaxKind.ImportKeyword) return false
  return !isTyped(checker, node)
}

/** The place of the literal takes members of a union only, so a wrong one does not compile. */
function isTyped(checker, node) {
  const { parent } = node
  const type = ts.isCaseClause(parent)
    ? checker.getTypeAtLocation(parent.parent.parent.expression)
    : isComparison(parent)
      ? checker.getTypeAtLocation(parent.left === node ? parent.right : parent.left)
      : checker.getContextualType(node)
  if (!type) return false
  const members = type.isUnion() ? type.types : [type]
  return members.some(member => member.isStringLiteral() && member.value === node.text)
}

function isComparison(node) {
  if (!ts.isBinaryExpression(node)) return false
  const { EqualsEqualsEqualsToken, ExclamationEqualsEqualsToken, InKeyword } = ts.SyntaxKind
  return [EqualsEqualsEqualsToken, ExclamationEqualsEqualsToken, InKeyword].includes(node.operatorToken.kind)
}

function readRecord(root) {
  const file = join(root, RECORD)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { most: 0, allowed: {} }
}
