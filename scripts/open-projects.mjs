// The product as the compiler sees it, for checks that need types: the library and the page.
import { existsSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import ts from 'typescript'

const PROJECTS = ['tsconfig.json', 'web/tsconfig.json']

/**
 * A compiler program for each project of the tree, or for those named. `texts` replaces files by name, for tests.
 * `isWhole`: with the tests, the examples and all else that the project includes.
 */
export function openProjects(root, { texts = new Map(), projects = PROJECTS, isWhole = false } = {}) {
  return projects
    .filter(name => existsSync(join(root, name)))
    .map(name => openProject(root, name, texts, isWhole))
}

function openProject(root, project, texts, isWhole) {
  const path = join(root, project)
  const { config, error } = ts.readConfigFile(path, ts.sys.readFile)
  const { options, fileNames, errors } = ts.parseJsonConfigFileContent(
    config,
    ts.sys,
    join(path, '..'),
    undefined,
    path,
  )
  const host = ts.createCompilerHost(options)
  const { getSourceFile } = host
  host.getSourceFile = (name, ...rest) => {
    const text = texts.get(relative(root, name).split(sep).join('/'))
    return text === undefined
      ? getSourceFile.call(host, name, ...rest)
      : ts.createSourceFile(name, text, ts.ScriptTarget.ES2022, true)
  }
  return ts.createProgram({
    rootNames: isWhole ? fileNames : fileNames.filter(name => isOwn(root, name)),
    options,
    host,
    configFileParsingDiagnostics: error ? [error, ...errors] : errors,
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
