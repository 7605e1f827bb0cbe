// The types of test/clients, with the packages of the clients. The sources that they import are checked by `npm run check`.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkProjects } from './open-projects.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const clients = join(root, 'test/clients/')
const { errors } = checkProjects(root, ['test/clients/tsconfig.json'], name => !name.startsWith(clients))
if (errors.length > 0) {
  console.error(errors.join('\n'))
  process.exit(1)
}
