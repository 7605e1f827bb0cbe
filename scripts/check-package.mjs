// What would be published: no file too many, entry points exist, types resolve for ESM users, nothing odd in package.json. The tarball is
// unpacked into empty strict TypeScript projects, ESM and CommonJS: every entry loads in both, and every code block of README,
// docs and comments compiles there.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compileBlocks, findCodeBlocks } from './check-code-blocks.mjs'
import { packageProblems } from './package-files.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ATTW = 'node_modules/@arethetypeswrong/cli/dist/index.js'

function run(command, args, cwd = ROOT) {
  return spawnSync(command, args, { cwd, encoding: 'utf8' })
}

/** Makes the tarball of what was built, and returns its path. */
export function pack(folder) {
  const packed = run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder])
  const name = packed.stdout.trim().split('\n').at(-1)
  if (packed.status !== 0 || !name) throw new Error(`npm pack failed: ${packed.stderr}`)
  return join(folder, name)
}

/**
 * Puts the packed package into a folder as an installation would: its files, its command, and its dependencies and no
 * others of the repository. Links stand for downloads, so nothing is fetched.
 */
export function installPackage(folder, tarball = pack(folder)) {
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, 'lango'), { recursive: true })
  const unpacked = run('tar', ['-xzf', tarball, '-C', join(modules, 'lango'), '--strip-components=1'])
  if (unpacked.status !== 0) throw new Error(`tar failed: ${unpacked.stderr}`)
  const { dependencies, bin } = JSON.parse(readFileSync(join(modules, 'lango/package.json'), 'utf8'))
  for (const name of [...Object.keys(dependencies), ...ALSO]) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name), 'dir')
  }
  mkdirSync(join(modules, '.bin'), { recursive: true })
  const command = join(modules, 'lango', bin.lango)
  chmodSync(command, 0o755)
  symlinkSync(command, join(modules, '.bin/lango'))
  writeFileSync(join(folder, 'package.json'), '{ "name": "empty", "private": true, "type": "module" }')
}

/** What the blocks use besides, and their readers install. */
const ALSO = ['@types/node', '@types/react', 'react', 'ai', '@ai-sdk/react', 'openai', '@anthropic-ai/sdk']

const STRICT = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noImplicitOverride: true,
  noFallthroughCasesInSwitch: true,
  target: 'ES2022',
  lib: ['ES2023', 'DOM', 'DOM.Iterable'],
  types: ['node'],
  skipLibCheck: true,
}

/** The projects that readers have. In CommonJS nothing can be awaited outside of a function. */
const PROJECTS = [
  {
    name: 'ESM',
    type: 'module',
    module: 'NodeNext',
    moduleResolution: 'NodeNext',
    verbatimModuleSyntax: true,
  },
  {
    name: 'CommonJS',
    type: 'commonjs',
    module: 'NodeNext',
    moduleResolution: 'NodeNext',
    ignored: [1309, 1470],
  },
  { name: 'bundler', type: 'module', module: 'Preserve', moduleResolution: 'Bundler' },
]

function checkProject({ name, type, ignored = [], ...modules }, tarball, parsed) {
  const folder = mkdtempSync(join(tmpdir(), 'lango-project-'))
  try {
    installPackage(folder, tarball)
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'empty', private: true, type }))
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...STRICT, ...modules } }),
    )
    const problems = compileBlocks(folder, findCodeBlocks(ROOT), ignored, parsed)
    // Bundlers read the same files as Node does in a project of modules.
    const loaded = modules.moduleResolution === 'Bundler' ? [] : loadEntries(folder, type)
    return [...problems, ...loaded].map(problem => `${name}: ${problem}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Every entry loads by `import`, or by `require`, with Node as it is. */
function loadEntries(folder, type) {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const names = Object.keys(exports).filter(name => !name.endsWith('.json'))
  const load = type === 'module' ? 'await import' : 'require'
  const lines = names.map(
    name => `if (Object.keys(${load}('lango${name.slice(1)}')).length === 0) throw '${name}'`,
  )
  writeFileSync(join(folder, 'load.js'), lines.join('\n'))
  const { status, stderr } = run(process.execPath, ['load.js'], folder)
  return status === 0 ? [] : [`the entries do not load: ${stderr.slice(-1000)}`]
}

function check() {
  const folder = mkdtempSync(join(tmpdir(), 'lango-pack-'))
  try {
    const tarball = pack(folder)
    const tools = [
      ['publint', ['node_modules/publint/src/cli.js', '--strict', tarball]],
      ['attw', [ATTW, tarball, '--profile', 'esm-only', '--no-emoji', '--format', 'ascii']],
    ]
    const failed = tools.flatMap(([name, args]) => {
      const { status, stdout, stderr } = run(process.execPath, args)
      return status === 0 ? [] : [`${name} failed:\n${stdout}${stderr}`]
    })
    const listed = run('tar', ['-tzf', tarball]).stdout.trim().split('\n')
    const files = packageProblems(listed.map(name => name.replace(/^package\//, '')))
    const parsed = { NodeNext: new Map(), Bundler: new Map() }
    const projects = PROJECTS.flatMap(project =>
      checkProject(project, tarball, parsed[project.moduleResolution]),
    )
    return [...files, ...failed, ...projects]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = check()
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(1)
  console.log(
    `the package installs into ${PROJECTS.map(({ name }) => name).join(', ')} projects, and every code block compiles`,
  )
}
