// One writing process of the benchmark: writer.ts <lango|adk> <url> <session> <appends>
import { storedMessage } from './events.js'

const [kind, url = '', sessionId = '', count = '0'] = process.argv.slice(2)
const appends = Number(count)

const append = kind === 'lango' ? await openLango() : await openAdk()
let done = 0
let failed = 0
const started = Date.now()
for (let index = 0; index < appends; index++) {
  try {
    await append(index)
    done += 1
  } catch {
    failed += 1
  }
}
console.log(JSON.stringify({ started, ended: Date.now(), done, failed }))
process.exit()

async function openLango() {
  const { openStore } = await import('../../src/entries/store.js')
  const store = await openStore(url)
  const key = { appName: 'bench', userId: 'user', sessionId }
  await store.createSession(key)
  return (index: number) => store.appendMessage(key, storedMessage(index, 600))
}

async function openAdk() {
  const { openPeer } = await import('./peer.js')
  // ADK's service fails when several processes create its tables at once: give each a few tries.
  for (let attempt = 0; ; attempt++) {
    try {
      const peer = await openPeer(url, [sessionId])
      return (index: number) => peer.append(sessionId, index, 600)
    } catch (error) {
      if (attempt > 20) throw error
      await new Promise(resolve => setTimeout(resolve, 100 + Math.random() * 300))
    }
  }
}
