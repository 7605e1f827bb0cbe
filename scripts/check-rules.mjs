// The rules that need types, over one reading of the product: switches that know every member of their union, and
// literals in two rooms. `--types` reads the tests and examples too and reports first what does not compile, as
// `tsc --noEmit` and `tsc --noEmit -p web` do. `--json` prints the literals.
import { fileURLToPath } from 'node:url'
import { checkSwitches } from './check-switches.mjs'
import { checkTwins } from './check-twins.mjs'
import { checkProjects, openProjects } from './open-projects.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const isWhole = process.argv.includes('--types')
const { programs, errors } = isWhole ? checkProjects(root) : { programs: openProjects(root), errors: [] }
if (errors.length > 0) {
  console.error(errors.join('\n'))
  process.exit(1)
}
const { switches, problems: open } = checkSwitches(root, programs)
const { twins, problems: doubled } = checkTwins(root, undefined, programs)
if (process.argv.includes('--json')) console.log(JSON.stringify(twins, null, 2))
else console.log(`${switches} switches know every member; ${twins.length} literals stand in two rooms`)
const problems = [...open, ...doubled]
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exit(1)
