/**
 * The largest packages in a few files instead of some thousand, with the code that V8 compiled from them: ADK loads in
 * 0.2 s of CPU time instead of 1.6 s. What several packages need is in files that all of them load: there is one instance of
 * it, as there is unbundled.
 */
import { execFile } from 'node:child_process'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LOADER = 'load-cached.cjs'

/** Those with many files, of which each costs time. Their main entry is all that the sources import. */
const BUNDLED = [
  '@google/adk',
  '@google/genai',
  '@hono/zod-openapi',
  '@anthropic-ai/sdk',
  'hono',
  'openai',
  'zod',
]

/** What the result depends on, besides the installed packages. */
export const BUNDLED_BY = [
  fileURLToPath(import.meta.url),
  fileURLToPath(new URL(`./${LOADER}`, import.meta.url)),
]

/** Fills a folder that serves as `node_modules`. */
export async function bundlePackages(folder: string): Promise<void> {
  const { build } = await import('vite')
  await build({
    configFile: false,
    root: ROOT,
    publicDir: false,
    logLevel: 'error',
    ssr: { noExternal: true },
    build: {
      ssr: true,
      outDir: folder,
      target: 'node20',
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(BUNDLED.map(name => [`${name}/index`, name])),
        output: {
          format: 'cjs',
          keepNames: true,
          entryFileNames: '[name].cjs',
          chunkFileNames: 'shared/[name]-[hash].cjs',
        },
      },
    },
  })
  await copyFile(fileURLToPath(new URL(`./${LOADER}`, import.meta.url)), join(folder, LOADER))
  const exported = await compile(folder)
  for (const name of BUNDLED) await describePackage(folder, name, exported[name] ?? [])
}

/** Loads the packages once in another process, which leaves the compiled code, and gives the names that they export. */
async function compile(folder: string): Promise<Record<string, string[]>> {
  const program = `
    const { load, keepCompiled } = require(${JSON.stringify(join(folder, LOADER))})
    const exported = ${JSON.stringify(BUNDLED)}.map(name => [name, Object.keys(load(name + '/index.cjs'))])
    keepCompiled()
    console.log(JSON.stringify(Object.fromEntries(exported)))
    process.exit()`
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { maxBuffer: 1 << 24 })
  return JSON.parse(stdout)
}

async function describePackage(folder: string, name: string, exported: readonly string[]): Promise<void> {
  const { version } = JSON.parse(await readFile(join(ROOT, 'node_modules', name, 'package.json'), 'utf8'))
  const description = { name, version, type: 'module', exports: './index.mjs' }
  const up = name
    .split('/')
    .map(() => '..')
    .join('/')
  // Some of the names are reserved words, as `enum` of Zod, which can be exported but not declared.
  const entry = [
    `import loader from '${up}/${LOADER}'`,
    `const loaded = loader.load('${name}/index.cjs')`,
    ...exported.map((each, index) => `const _${index} = loaded.${each}`),
    `export { ${exported.map((each, index) => `_${index} as ${each}`).join(', ')} }`,
  ]
  await writeFile(join(folder, name, 'index.mjs'), `${entry.join('\n')}\n`)
  await writeFile(join(folder, name, 'package.json'), JSON.stringify(description))
}
