#!/usr/bin/env node
import { runCommandLine } from './command/command-line.ts'
import { NobodyReads } from './command/surroundings.ts'
import { explore } from './explore.ts'

const { stdout, stderr } = process

/** Beside this file, built or not. */
function program(name: string): URL {
  return new URL(`./${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url)
}

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
  screen: stderr,
  explore,
  programs: { recorder: program('hunt-recorder'), prover: program('hunt-prover') },
})
