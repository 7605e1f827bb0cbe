// Runs a command of Lango from its sources, in this very process: `npm start`, `npm run chat`, and `npx lango` in a clone.
// The web page, which a fresh clone lacks, is built first where a server needs it.
const { register } = await import('tsx/esm/api').catch(() => {
  console.error('The packages are not installed yet. Run: npm ci')
  process.exit(1)
})
const args = process.argv.slice(2)
const asksForHelp = args.some(word => word === '--help' || word === '-h')
if (['serve', 'web'].includes(args[0]) && !asksForHelp) {
  const { buildWeb } = await import('./build-web.mjs')
  await buildWeb({ onStart: () => console.error('Building the web chat, once …') })
}
register()
await import('../src/cli/main.ts')
