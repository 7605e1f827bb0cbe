#!/usr/bin/env node
// The command `lango`. The package runs what was built; a clone, which has the sources, runs those. A clone that was built
// and has only the packages of production cannot run sources.
import { existsSync } from 'node:fs'

const sources = new URL('../scripts/start.mjs', import.meta.url)
const built = new URL('../dist/cli/main.js', import.meta.url)
const runsSources = existsSync(sources) && (hasLoader() || !existsSync(built))
await import((runsSources ? sources : built).href)

function hasLoader() {
  try {
    return import.meta.resolve('tsx/esm/api') !== ''
  } catch {
    return false
  }
}
