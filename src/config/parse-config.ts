/** Checks a configuration and fills in its defaults. */
import { configSchema, type LangoConfig } from './config.js'
import { furtherProblems, withProviderTypes } from './further-problems.js'
import { type ConfigProblem, invalidConfig, readData } from './read-data.js'

export interface ParseOptions {
  /** What is checked, such as a file's name. */
  where?: string | undefined
  /** Says where the value of a key comes from, when that is not the file. */
  originOf?: ((path: string) => string | undefined) | undefined
}

/** Checks a configuration and fills in the defaults. */
export function parseConfig(input: unknown, options: ParseOptions = {}): LangoConfig {
  const read = readData(configSchema, input, FILE_NOTES)
  const problems = read.data ? furtherProblems(read.data) : read.problems
  if (!read.data || problems.length > 0) {
    throw invalidConfig(
      options.where ?? 'The configuration',
      problems.map(problem => withOrigin(problem, options)),
    )
  }
  return withProviderTypes(read.data)
}

const FILE_NOTES = new Map([
  ['logger', 'Only `createRuntime` takes a logger; a configuration file has `log`.'],
])

function withOrigin(problem: ConfigProblem, { originOf }: ParseOptions): ConfigProblem {
  const origin = originOf?.(problem.path)
  return origin === undefined
    ? problem
    : { ...problem, message: `${problem.message} It comes from ${origin}.` }
}
