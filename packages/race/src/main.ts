#!/usr/bin/env node
import { NobodyReads, runCommandLine } from './demo/command-line.ts'
import { explore } from './explore.ts'

const { stdout, stderr } = process

let isRead = true
// Whoever reads us has had enough: head, or a pager that was closed. What was made is taken away first.
stdout.on('error', () => {
  isRead = false
})
stderr.on('error', () => undefined)

process.exitCode = await runCommandLine(process.argv.slice(2), {
  environment: process.env,
  out(text) {
    if (!isRead) throw new NobodyReads()
    stdout.write(text)
  },
  err: (text) => stderr.write(text),
  explore,
})
