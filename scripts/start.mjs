// `npm start` and `npm run chat`: runs a command of Lango from its sources, in this very process. What a fresh
// clone lacks, the built web page, is made first.
import { fileURLToPath } from 'node:url'
import { buildWeb } from './build-web.mjs'

const { register } = await import('tsx/esm/api').catch(() => {
  console.error('The packages are not installed yet. Run: npm ci')
  process.exit(1)
})
const [command = 'serve', ...rest] = process.argv.slice(2)
const asksForHelp = rest.some(word => word === '--help' || word === '-h')
if (command === 'serve' && !asksForHelp) {
  await buildWeb({ onStart: () => console.error('Building the web chat, once …') })
}
const main = new URL('../src/cli/main.ts', import.meta.url)
process.argv = [process.argv[0], fileURLToPath(main), command, ...rest]
register()
await import(main.href)
