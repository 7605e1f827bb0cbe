#!/usr/bin/env node
// The command `lango`. The package runs what was built; a clone, which has the sources, runs those.
import { existsSync } from 'node:fs'

const sources = new URL('../scripts/start.mjs', import.meta.url)
await import(existsSync(sources) ? sources.href : '../dist/cli/main.js')
