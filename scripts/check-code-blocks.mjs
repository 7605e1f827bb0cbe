// Every code block in README.md, in docs/ and in the comments of src compiles under `strict` and runs.
//
// - Blocks are fences with the language ts, tsx, js or jsx: in Markdown, and in `/** … */` comments of src.
// - A block is a separate module. What it needs and a reader does not (a stub, a runtime from an earlier block)
//   is in an HTML comment directly before the fence, `<!-- setup` on its first line, and is put before the block.
// - `lango` and `lango/*` are the sources (`paths` of tsconfig.json). Unused names are allowed.
// - ```ts no-run: <reason>``` is compiled and not run. The reason is required. Blocks with JSX are never run.
//
// One compiler program holds all blocks, and only the blocks are checked in it. They run one after another in one
// process, in an empty folder, without keys in the environment; variables that a block sets do not reach the next.
//
// `node scripts/check-code-blocks.mjs [--no-compile] [--no-run] [file…]`. `npm run check` only runs them here: they are
// compiled with the packed package, by check-package.mjs.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'

const PAGES = ['README.md', 'CHANGELOG.md', 'SECURITY.md']
const FOLDER = '.code-blocks'
const FENCE = /^( *)(`{3,})(.*)$/
const RUN_LIMIT_MS = 300_000

/** The blocks of a tree: `{ file, line, language, code, setup, noRun }`; `noRun` is the reason or undefined. */
export function findCodeBlocks(root) {
  const markdown = [...PAGES, ...list(root, 'docs').filter(name => name.endsWith('.md'))]
  const sources = list(root, 'src').filter(name => /\.tsx?$/.test(name) && !/\.test\.tsx?$/.test(name))
  return [
    ...markdown.flatMap(file => blocksIn(file, read(root, file).split('\n'))),
    ...sources.flatMap(file => blocksIn(file, commentLines(read(root, file)))),
  ]
}

function list(root, folder) {
  try {
    return readdirSync(join(root, folder), { recursive: true })
      .map(name => `${folder}/${String(name).split(sep).join('/')}`)
      .sort()
  } catch {
    return []
  }
}

function read(root, file) {
  try {
    return readFileSync(join(root, file), 'utf8')
  } catch {
    return ''
  }
}

/** The lines of a source file with all but its doc comments blanked, so that line numbers stay. */
function commentLines(text) {
  let inside = false
  return text.split('\n').map(line => {
    if (!inside && /^\s*\/\*\*/.test(line)) inside = !line.includes('*/')
    else if (inside && line.includes('*/')) inside = false
    else if (inside) return line.replace(/^\s*\* ?/, '')
    return ''
  })
}

function blocksIn(file, lines) {
  const blocks = []
  for (let at = 0; at < lines.length; at++) {
    const [, indent, ticks, info] = FENCE.exec(lines[at]) ?? []
    if (ticks === undefined) continue
    const end = lines.findIndex((line, index) => index > at && line.trim() === ticks)
    const last = end < 0 ? lines.length : end
    const [language, ...rest] = info.trim().split(/\s+/)
    if (/^(ts|tsx|js|jsx|typescript|javascript)$/.test(language)) {
      const code = lines
        .slice(at + 1, last)
        .map(line => (line.startsWith(indent) ? line.slice(indent.length) : line))
      const setup = setupBefore(lines, at)
      blocks.push({ file, line: at + 1, language, code: code.join('\n'), setup, ...wordsOf(rest.join(' ')) })
    }
    at = last
  }
  return blocks
}

function wordsOf(words) {
  if (words === '') return {}
  const [, reason] = /^no-run: (.+)$/.exec(words) ?? []
  return reason === undefined ? { badInfo: words } : { noRun: reason }
}

function setupBefore(lines, fence) {
  if (lines[fence - 1]?.trim() !== '-->') return ''
  const start = lines.slice(0, fence).findLastIndex(line => line.trim().startsWith('<!--'))
  return lines[start]?.trim() === '<!-- setup' ? lines.slice(start + 1, fence - 1).join('\n') : ''
}

/** One sentence for each block that does not compile, or does not run. */
export async function checkCodeBlocks(root, { compile = true, run = true, only = [], parsed } = {}) {
  const blocks = findCodeBlocks(root).filter(({ file }) => only.length === 0 || only.includes(file))
  const problems = blocks.flatMap(badInfo)
  if (compile) problems.push(...compileBlocks(root, blocks, [], parsed))
  const runnable = blocks.filter(({ noRun, language }) => noRun === undefined && !language.endsWith('x'))
  if (run && runnable.length > 0 && problems.length === 0) problems.push(...(await runAll(root, runnable)))
  return { blocks: blocks.length, run: run ? runnable.length : 0, problems }
}

function badInfo({ file, line, badInfo: words }) {
  if (words === undefined) return []
  return [`${file}:${line}: "${words}" after the fence is not "no-run: <reason>"`]
}

function nameOf(block) {
  const extension = { typescript: 'ts', javascript: 'js' }[block.language] ?? block.language
  return `${block.file.replaceAll(/[^a-zA-Z0-9]+/g, '-')}-${block.line}.${extension}`
}

/** The block as a module. `export {}` makes it one when it imports nothing. */
function textOf({ setup, code }) {
  return `${setup}\n${code}\nexport {}\n`
}

/**
 * What does not compile with the tsconfig.json of `root`, but for errors with the ignored codes. `parsed` keeps the
 * declarations of packages and of the language, for further projects that resolve modules in the same way.
 */
export function compileBlocks(root, blocks, ignored = [], parsed = new Map()) {
  const options = optionsOf(root)
  const virtual = new Map(blocks.map(block => [join(root, FOLDER, nameOf(block)), block]))
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = name => virtual.has(resolve(name)) || fileExists.call(host, name)
  host.readFile = name => {
    const block = virtual.get(resolve(name))
    return block ? textOf(block) : readFile.call(host, name)
  }
  host.getSourceFile = (name, version, ...rest) => {
    const block = virtual.get(resolve(name))
    if (block) return ts.createSourceFile(name, textOf(block), version, true)
    const source = parsed.get(name) ?? getSourceFile.call(host, name, version, ...rest)
    if (name.includes('/node_modules/')) parsed.set(name, source)
    return source
  }
  const program = ts.createProgram([...virtual.keys()], options, host)
  return [...virtual].flatMap(([name, block]) => {
    const source = program.getSourceFile(name)
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    return found
      .filter(({ code }) => !ignored.includes(code))
      .map(diagnostic => describe(block, source, diagnostic))
  })
}

function optionsOf(root) {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root)
  const lib = options.lib && [...options.lib, 'lib.dom.d.ts', 'lib.dom.iterable.d.ts']
  return {
    ...options,
    ...(lib ? { lib } : {}),
    strict: true,
    noEmit: true,
    allowJs: true,
    checkJs: true,
    jsx: ts.JsxEmit.ReactJSX,
    noUnusedLocals: false,
    noUnusedParameters: false,
  }
}

function describe(block, source, { start, messageText }) {
  const text = ts.flattenDiagnosticMessageText(messageText, '\n')
  const line = source.getLineAndCharacterOfPosition(start ?? 0).line - block.setup.split('\n').length
  const where =
    line < 0 ? `${block.file}:${block.line}: in the setup` : `${block.file}:${block.line + 1 + line}`
  return `${where}: ${text}`
}

async function runAll(root, blocks) {
  const folder = mkdtempSync(join(tmpdir(), 'lango-blocks-'))
  mkdirSync(join(root, FOLDER), { recursive: true })
  const modules = mkdtempSync(join(root, FOLDER, 'run-'))
  try {
    const files = blocks.map(block => {
      const name = join(modules, nameOf(block))
      writeFileSync(name, textOf(block))
      return name
    })
    const failures = await runModules(root, folder, files)
    return failures.map(({ index, message }) => {
      const { file, line } = blocks[index]
      return `${file}:${line}: the block does not run: ${message}`
    })
  } finally {
    rmSync(modules, { recursive: true, force: true })
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Imports the files one after another in a child process; resolves with those that failed. */
function runModules(root, folder, files) {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
  const self = fileURLToPath(import.meta.url)
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, ['--import', tsx, self, '--child', folder, ...files], {
    cwd: root,
    env: { PATH, HOME: folder, TSX_TSCONFIG_PATH: join(root, 'tsconfig.json') },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const failures = []
  let reported = 0
  let output = ''
  const keep = chunk => {
    output = (output + chunk).slice(-4000)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  child.on('message', ({ index, message }) => {
    reported = index + 1
    if (message !== undefined) failures.push({ index, message })
  })
  return new Promise((done, fail) => {
    child.on('error', fail)
    child.on('close', code => {
      if (reported < files.length)
        failures.push({ index: reported, message: `the process ended with code ${code}\n${output}` })
      done(failures)
    })
  })
}

async function runChild([folder, ...files]) {
  process.chdir(folder)
  const before = { ...process.env }
  for (const [index, file] of files.entries()) {
    process.send({ index, message: await outcome(file) })
    process.env = { ...before }
  }
  process.disconnect()
  process.exit(0)
}

async function outcome(file) {
  let timer
  const late = new Promise(done => {
    timer = setTimeout(() => done(`timed out after ${RUN_LIMIT_MS} ms`), RUN_LIMIT_MS)
  })
  const failure = import(pathToFileURL(file).href).then(
    () => undefined,
    error => String(error?.stack ?? error),
  )
  return Promise.race([failure, late]).finally(() => clearTimeout(timer))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const words = process.argv.slice(2)
  if (words[0] === '--child') await runChild(words.slice(1))
  const only = words.filter(word => !word.startsWith('--'))
  const root = fileURLToPath(new URL('..', import.meta.url))
  const { blocks, run, problems } = await checkCodeBlocks(root, {
    compile: !words.includes('--no-compile'),
    run: !words.includes('--no-run'),
    only,
  })
  for (const problem of problems) console.error(problem)
  console.log(`${blocks} code blocks, ${run} of them run`)
  if (problems.length > 0) process.exit(1)
}
