#!/usr/bin/env node
/** The program: runs the command line of this process. */
import { processIo } from './io.js'
import { runCommandLine } from './run-command-line.js'

process.exitCode = await runCommandLine(processIo(), process.argv.slice(2))
