#!/usr/bin/env node
import { runCommand } from './command/run-command.ts'

const stop = new AbortController()
process.once('SIGINT', () => stop.abort())
process.once('SIGTERM', () => stop.abort())

const { stdin, stdout, stderr } = process
// Who started it may have stopped reading, as `head` does: it serves on.
for (const stream of [stdout, stderr]) stream.on('error', () => undefined)

process.exitCode = await runCommand(process.argv.slice(2), {
  environment: process.env,
  out: (text) => stdout.write(text),
  err: (text) => stderr.write(text),
  stop: stop.signal,
  terminal:
    stdin.isTTY && stdout.isTTY
      ? { onEnter: (hear) => void stdin.setEncoding('utf8').on('data', hear) }
      : undefined,
})
// Else the process would wait for somebody to type.
stdin.pause()
