#!/usr/bin/env node
import { run } from './run.ts'
import { openScreen } from './terminal/full-screen.ts'
import { paintFor } from './terminal/paint.ts'

const { stdin, stdout, stderr } = process

/** Until somebody asks for it, signals end the process as always; and so does a second one. */
function stopSignal(): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => stop.abort(name))
  }
  return stop.signal
}

// Whoever reads us has had enough: head, or a pager that was closed.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1)
})

stderr.on('error', () => undefined)

// What programs read from stderr is one document: warnings, of clients and of Node too, are for people.
const usual = process.listeners('warning')
const typed = process.argv.slice(2)
const ours = typed.includes('--') ? typed.slice(0, typed.indexOf('--')) : typed
process.removeAllListeners('warning')
process.on('warning', (warning: Error & { readonly code?: string }) => {
  if (ours.includes('--json')) return
  if (warning.code?.startsWith('HOLDFAST_') === true) stderr.write(`${warning.message}\n`)
  else for (const tell of usual) tell(warning)
})

process.exitCode = await run(typed, {
  environment: process.env,
  folder: process.cwd(),
  stopSignal,
  onSignals(names, listener) {
    for (const name of names) process.on(name, listener)
    return () => {
      for (const name of names) process.off(name, listener)
    }
  },
  out: (text) => stdout.write(text),
  err: (text) => stderr.write(text),
  terminal: {
    isTerminal: stdout.isTTY,
    isTold: stderr.isTTY,
    paint: paintFor(stdout.isTTY, process.env),
    // In a pipe there is room, unless somebody said how much.
    size: () => ({
      columns: stdout.columns ?? (Number(process.env['COLUMNS']) || 160),
      rows: stdout.rows ?? 40,
    }),
    ...(stdin.isTTY && stdout.isTTY
      ? { openScreen: (onKey, onResize) => openScreen(stdin, stdout, onKey, onResize) }
      : {}),
  },
})

// Unless a connection to a server that says nothing keeps us, we have ended by then.
setTimeout(() => process.exit(), 2_000).unref()
