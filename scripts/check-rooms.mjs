// The import table, by dependency-cruiser. Under some compiler versions the cruiser sees nothing and says
// that all is well, so the number of modules that it saw is checked too.
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { cruise } from 'dependency-cruiser'
import extractConfig from 'dependency-cruiser/config-utl/extract-depcruise-config'
import extractTsConfig from 'dependency-cruiser/config-utl/extract-ts-config'

/** Cruises `<root>/src` and `<root>/web/src`, if there is one, and returns what is wrong, as sentences. */
export async function checkRooms(root) {
  const previous = process.cwd()
  process.chdir(root)
  try {
    const rules = await extractConfig(fileURLToPath(new URL('../.dependency-cruiser.mjs', import.meta.url)))
    const options = {
      ...rules.options,
      ruleSet: { forbidden: rules.forbidden },
      validate: true,
      outputType: 'json',
    }
    const places = ['src', 'web/src'].filter(existsSync)
    const result = await cruise(places, options, {}, { tsConfig: extractTsConfig('tsconfig.json') })
    const { modules, summary } = JSON.parse(result.output)
    const problems = summary.violations
      .filter(violation => violation.rule.severity === 'error')
      .map(violation => `${violation.rule.name}: ${violation.from} → ${violation.to}`)
    const seen = modules.filter(module => module.source.startsWith('src/')).length
    const files = readdirSync('src', { recursive: true }).filter(name => String(name).endsWith('.ts')).length
    if (seen < files) problems.push(`modules-unseen: ${seen} modules were cruised, src has ${files} files`)
    return { problems, seen, files }
  } finally {
    process.chdir(previous)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { problems, seen, files } = await checkRooms(fileURLToPath(new URL('..', import.meta.url)))
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(1)
  console.log(`${seen} modules of ${files} files obey the import table`)
}
