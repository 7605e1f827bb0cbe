// The rules that need types, over one reading of the product: switches that know every member of their union, and
// literals in two rooms. `--json` prints the literals.
import { fileURLToPath } from 'node:url'
import { checkSwitches } from './check-switches.mjs'
import { checkTwins } from './check-twins.mjs'
import { openProjects } from './open-projects.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const programs = openProjects(root)
const { switches, problems: open } = checkSwitches(root, programs)
const { twins, problems: doubled } = checkTwins(root, undefined, programs)
if (process.argv.includes('--json')) console.log(JSON.stringify(twins, null, 2))
else console.log(`${switches} switches know every member; ${twins.length} literals stand in two rooms`)
const problems = [...open, ...doubled]
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exit(1)
