// The product as the compiler sees it, for checks that need types: the library and the page, without tests.
import { existsSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import ts from 'typescript'

const PROJECTS = ['tsconfig.json', 'web/tsconfig.json']

/** A compiler program for each project of the tree; `texts` replaces files by name, for tests. */
export function openProjects(root, texts = new Map()) {
  return PROJECTS.filter(name => existsSync(join(root, name))).map(name => openProject(root, name, texts))
}

function openProject(root, project, texts) {
  const path = join(root, project)
  const { config } = ts.readConfigFile(path, ts.sys.readFile)
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, join(path, '..'))
  const host = ts.createCompilerHost(options)
  const { getSourceFile } = host
  host.getSourceFile = (name, ...rest) => {
    const text = texts.get(relative(root, name).split(sep).join('/'))
    return text === undefined
      ? getSourceFile.call(host, name, ...rest)
      : ts.createSourceFile(name, text, ts.ScriptTarget.ES2022, true)
  }
  const names = fileNames.filter(name => isOwn(root, name))
  return ts.createProgram(names, options, host)
}

/** The product's files of a program: src and web/src, without tests. */
export function ownFiles(root, program) {
  return program.getSourceFiles().filter(({ fileName }) => isOwn(root, fileName))
}

function isOwn(root, name) {
  const path = relative(root, name).split(sep).join('/')
  return /^(src|web\/src)\//.test(path) && !/\.(test|d)\.tsx?$/.test(path)
}
