// The product as the compiler sees it, for checks that need types: the library and the page.
import { existsSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import ts from 'typescript'

const PROJECTS = ['tsconfig.json', 'web/tsconfig.json']
/** Record of checked files by hash: files that have not changed since are not checked again. */
const CACHE = 'node_modules/.cache/lango-types'

/** A compiler program for each project of the tree, with the files of the product only. */
export function openProjects(root) {
  return configsOf(root).map(({ options, fileNames }) =>
    ts.createProgram(
      fileNames.filter(name => isOwn(root, name)),
      options,
    ),
  )
}

/**
 * The programs of all that the projects include, with tests and examples, and their errors as text. Files for which
 * `isElsewhere` holds are left to another check.
 */
export function checkProjects(root, projects = PROJECTS, isElsewhere = () => false) {
  const checked = new Set()
  const builders = configsOf(root, projects).map(({ path, options, fileNames, errors }) => {
    const cached = { ...options, incremental: true, tsBuildInfoFile: cacheOf(root, path) }
    const builder = ts.createIncrementalProgram({
      rootNames: fileNames,
      options: cached,
      configFileParsingDiagnostics: errors,
      host: ts.createIncrementalCompilerHost(cached),
    })
    const found = errorsOf(builder, name => checked.has(name) || isElsewhere(name))
    for (const { fileName } of builder.getSourceFiles()) checked.add(fileName)
    return { program: builder.getProgram(), errors: found }
  })
  return {
    programs: builders.map(({ program }) => program),
    errors: describe(
      root,
      builders.flatMap(({ errors }) => errors),
    ),
  }
}

function describe(root, errors) {
  const host = {
    getCurrentDirectory: () => root,
    getCanonicalFileName: name => name,
    getNewLine: () => '\n',
  }
  return ts.sortAndDeduplicateDiagnostics(errors).map(error => ts.formatDiagnostic(error, host).trimEnd())
}

/** As `tsc` reports them, but for files that another project has checked: the page imports sources of the library. */
function errorsOf(builder, isChecked) {
  while (builder.getSemanticDiagnosticsOfNextAffectedFile(undefined, file => isChecked(file.fileName)));
  const own = builder.getSourceFiles().filter(({ fileName }) => !isChecked(fileName))
  const errors = [
    ...builder.getConfigFileParsingDiagnostics(),
    ...builder.getOptionsDiagnostics(),
    ...builder.getGlobalDiagnostics(),
    ...own.flatMap(file => [
      ...builder.getSyntacticDiagnostics(file),
      ...builder.getSemanticDiagnostics(file),
    ]),
  ]
  // Nothing is emitted but the record of what was checked.
  builder.emit()
  return errors
}

function cacheOf(root, path) {
  return join(root, CACHE, `${relative(root, path).replaceAll(/[/\\]/g, '-')}.tsbuildinfo`)
}

function configsOf(root, projects = PROJECTS) {
  return projects
    .map(name => join(root, name))
    .filter(path => existsSync(path))
    .map(path => {
      const { config, error } = ts.readConfigFile(path, ts.sys.readFile)
      const folder = join(path, '..')
      const { options, fileNames, errors } = ts.parseJsonConfigFileContent(
        config,
        ts.sys,
        folder,
        undefined,
        path,
      )
      return { path, options, fileNames, errors: error ? [error, ...errors] : errors }
    })
}

/** The product's files of a program: src and web/src, without tests. */
export function ownFiles(root, program) {
  return program.getSourceFiles().filter(({ fileName }) => isOwn(root, fileName))
}

function isOwn(root, name) {
  const path = relative(root, name).split(sep).join('/')
  return /^(src|web\/src)\//.test(path) && !/\.(test|d)\.tsx?$/.test(path)
}
