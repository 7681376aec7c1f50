/**
 * The process between the holder of a lease and the command that runs under it. It is the command's parent, in a session
 * of its own, so that what stops or kills the holder does not reach it, and it ends the command before the lease can
 * expire: if the holder died, stands still, or could not renew. A program, started by guarded-command.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { gateLine, gateNames } from './gate-words.ts'
import type { FromGuardian, ToGuardian } from './guardian-words.ts'
import { machineMs } from './machine-clock.ts'
import { endGroup, signalGroup } from './process-group.ts'

/** Timers stand still while a machine is suspended, so the clock is read again and again. */
const lookEveryMs = 50

/** Waits for a line, so that the command does not begin before both of us know it; then becomes the command. */
const gate = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? './gate.ts' : './gate.js', import.meta.url),
)

/** SIGUSR1 would open a debugger, and a warning would look like one of the command. */
const gateFlags = ['--disable-sigusr1', '--no-warnings']

/** What a terminal sends to everybody in front of it; the rest is for the command itself, as of a supervisor. */
const ofTerminal: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGWINCH']

const graceMs = Number(process.argv[2])
let child: ChildProcess | undefined
let until = 0
let killAt = Number.POSITIVE_INFINITY
let ending: Promise<void> | undefined
let cut = false
/** The gate waits, the holder knows of it, and it was told. */
let isReady = false
let isKnown = false
let isTold = false

const tell = (message: FromGuardian): void => {
  if (process.connected) process.send?.(message, () => undefined)
}

/** Once: a second SIGTERM means "at once" to many programs. */
function end(group: number): Promise<void> {
  killAt = Math.min(killAt, machineMs() + graceMs, until + graceMs)
  ending ??= endGroup(group, () => killAt)
  return ending
}

/** Some reasons are thrown, such as arguments that are too long, and others told later. */
function start(command: readonly string[]): void {
  try {
    watch(
      spawn(process.execPath, [...gateFlags, gate, ...command], {
        detached: true,
        env: gateNames.hidden(process.env),
        stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
      }),
    )
  } catch (error) {
    notStarted(error as NodeJS.ErrnoException)
  }
}

function notStarted({ code, message }: NodeJS.ErrnoException): void {
  tell({ kind: 'not-started', reason: code ?? message })
  leave()
}

function leave(): void {
  if (process.connected) process.disconnect()
  process.exit(0)
}

function watch(started: ChildProcess): void {
  child = started
  // A command that is over does not read the line any more.
  started.stdio[gateLine]?.on('error', () => undefined)
  started.stdio[gateLine]?.once('data', () => {
    isReady = true
    open()
  })
  started.once('error', notStarted)
  started.once('spawn', () => tell({ kind: 'spawned', group: started.pid as number }))
  started.once('exit', (code, signal) => {
    if (code !== null && !isTold) {
      notStarted({ name: '', message: `what was to become it ended with ${code}` })
      return
    }
    // What it left running in its group has no lease once we have told of its end.
    void end(started.pid as number).then(() => {
      tell({ kind: 'ended', code, signal, cut })
      leave()
    })
  })
}

/** Only while the lease is certain, which it may not be if all of us stood still. */
function open(): void {
  const line = child?.stdio[gateLine]
  if (!isReady || !isKnown || isTold) return
  isTold = true
  if (machineMs() >= until) cut = true
  if (line !== undefined && line !== null && 'write' in line) line.end(cut ? 'no\n' : 'go\n')
}

process.on('message', (message: ToGuardian) => {
  if (message.kind === 'spawn') {
    until = message.until
    start(message.command)
  } else if (message.kind === 'until') {
    until = message.until
    tell({ kind: 'alive' })
  } else if (message.kind === 'go') {
    isKnown = true
    open()
  } else if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) {
    if (ofTerminal.includes(message.signal)) signalGroup(child.pid, message.signal)
    else child.kill(message.signal)
  }
})

process.on('disconnect', () => {
  if (child?.pid === undefined) process.exit(0)
  void end(child.pid)
})

setInterval(() => {
  if (child?.pid === undefined || machineMs() < until) return
  cut ||= ending === undefined
  void end(child.pid)
}, lookEveryMs)

// Whoever means the command tells the holder.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) {
  process.on(signal, () => undefined)
}
