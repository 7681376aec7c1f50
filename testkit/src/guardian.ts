/**
 * The process between a test run and one server. It owns the server's folder, runs what it is told
 * to, and when its channel to the test run closes, for whatever reason, SIGKILL included, it stops
 * the server and removes the folder. So no run, however it dies, leaves a server behind.
 *
 * It is a program, started by guard.ts; the messages are its only interface.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ServiceAccount } from './service-account.ts'

export interface Command {
  readonly file: string
  readonly args: readonly string[]
}

export interface GuardianPlan {
  readonly folder: string
  readonly account?: ServiceAccount | undefined
}

export type Request =
  | { readonly kind: 'run'; readonly command: Command }
  | { readonly kind: 'serve'; readonly command: Command }
  | { readonly kind: 'stop'; readonly signal: NodeJS.Signals }

export type Reply =
  | { readonly kind: 'ready' }
  | { readonly kind: 'ran'; readonly code: number | null }
  | { readonly kind: 'serving'; readonly pid: number }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'ended'; readonly log: string }

/** A server that has not stopped by then is killed. */
const stopLimitMs = 20_000

function guard({ folder, account }: GuardianPlan): void {
  const logFile = join(folder, 'log')
  let child: ChildProcess | undefined
  let leaving = false

  mkdirSync(folder, { mode: 0o700 })
  if (account !== undefined) chownSync(folder, account.uid, account.gid)

  const reply = (message: Reply): void => {
    // The other side may be gone; then the closing channel is what we act on.
    if (process.connected) process.send?.(message, () => {})
  }

  const start = ({ file, args }: Command): ChildProcess => {
    const log = openSync(logFile, 'a')
    return spawn(file, args, { ...account, cwd: folder, stdio: ['ignore', log, log] })
  }

  const leave = (signal: NodeJS.Signals): void => {
    if (leaving) return
    leaving = true
    const finish = (): void => {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
      process.exit(0)
    }
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
      finish()
      return
    }
    child.once('exit', finish)
    child.kill(signal)
    setTimeout(() => child?.kill('SIGKILL'), stopLimitMs)
  }

  process.on('message', (request: Request) => {
    if (request.kind === 'stop') {
      leave(request.signal)
      return
    }
    const started = start(request.command)
    child = started
    started.once('error', (error) => reply({ kind: 'failed', reason: error.message }))
    if (request.kind === 'run') {
      started.once('exit', (code) => {
        if (code === 0) reply({ kind: 'ran', code })
        else reply({ kind: 'failed', reason: readFileSync(logFile, 'utf8') })
      })
      return
    }
    started.once('spawn', () => reply({ kind: 'serving', pid: started.pid as number }))
    started.once('exit', () => {
      if (!leaving) reply({ kind: 'ended', log: readFileSync(logFile, 'utf8') })
    })
  })
  // SIGQUIT is PostgreSQL's immediate shutdown: the data is about to be deleted anyway.
  process.on('disconnect', () => leave('SIGQUIT'))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => leave('SIGQUIT'))
  }
  reply({ kind: 'ready' })
}

guard(JSON.parse(process.argv[2] as string) as GuardianPlan)
