#!/usr/bin/env node
import { runCommandLine } from './demo/command-line.ts'
import { explore } from './explore.ts'

process.exitCode = await runCommandLine(process.argv.slice(2), {
  environment: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  explore,
})
