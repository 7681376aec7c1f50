/**
 * The process between a test run and one server. It owns the server's folder, runs what it is told
 * to, and when its channel to the test run closes, for whatever reason, SIGKILL included, it stops
 * the server and removes the folder. So no run, however it dies, leaves a server behind.
 *
 * It is a program, started by guard.ts; the messages are its only interface.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { join } from 'node:path'
import { processesIn } from './processes-in.ts'
import { sendSignal } from '../send-signal.ts'
import type { ServiceAccount } from './service-account.ts'

export interface Command {
  readonly file: string
  readonly args: readonly string[]
}

export interface GuardianPlan {
  readonly folder: string
  readonly account?: ServiceAccount | undefined
  /** The folder `data` is in memory, a file system of its own with so much room. */
  readonly memoryMb?: number | undefined
}

export type Request =
  | { readonly kind: 'run'; readonly command: Command }
  | { readonly kind: 'serve'; readonly command: Command }
  | { readonly kind: 'stop'; readonly signal: NodeJS.Signals }

export type Reply =
  | { readonly kind: 'ready'; readonly mounted: boolean }
  | { readonly kind: 'ran'; readonly code: number | null }
  | { readonly kind: 'serving'; readonly pid: number }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'ended'; readonly log: string }

/** A server that has not stopped by then is killed. */
const stopLimitMs = 20_000

/** A server that is started again and again writes into the same log. */
const logLimitBytes = 4_000_000

function guard({ folder, account, memoryMb }: GuardianPlan): void {
  const logFile = join(folder, 'log')
  const memory = join(folder, 'data')
  let child: ChildProcess | undefined
  let leaving = false

  mkdirSync(folder, { mode: 0o700 })
  if (account !== undefined) chownSync(folder, account.uid, account.gid)
  const mounted = memoryMb !== undefined && mount(memory, memoryMb, account)

  const reply = (message: Reply): void => {
    // The other side may be gone; then the closing channel is what we act on.
    if (process.connected) process.send?.(message, () => {})
  }

  const start = ({ file, args }: Command): ChildProcess => {
    const log = openSync(logFile, 'a')
    if (statSync(logFile).size > logLimitBytes) truncateSync(logFile)
    const started = spawn(file, args, { ...account, cwd: folder, stdio: ['ignore', log, log] })
    closeSync(log)
    return started
  }

  const leave = (signal: NodeJS.Signals): void => {
    if (leaving) return
    leaving = true
    const finish = (): void => {
      // What a server that was killed left running.
      for (const pid of processesIn(folder)) sendSignal(pid, 'SIGKILL')
      if (mounted) spawnSync('umount', ['--lazy', memory])
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
      process.exit(0)
    }
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) {
      finish()
      return
    }
    child.once('exit', finish)
    child.kill(signal)
    // It may have been stopped by a test.
    child.kill('SIGCONT')
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
      if (!leaving) reply({ kind: 'ended', log: readFileSync(logFile, 'utf8').slice(-20_000) })
    })
  })
  // SIGQUIT is PostgreSQL's immediate shutdown: the data is about to be deleted anyway.
  process.on('disconnect', () => leave('SIGQUIT'))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => leave('SIGQUIT'))
  }
  reply({ kind: 'ready', mounted })
}

/** Only root may, and not everywhere; whoever wants it has to look whether it was done. */
function mount(place: string, sizeMb: number, account: ServiceAccount | undefined): boolean {
  mkdirSync(place, { mode: 0o700 })
  const owner = account === undefined ? '' : `,uid=${account.uid},gid=${account.gid}`
  const options = `size=${sizeMb}m,mode=0700${owner}`
  const made = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'holdfast-testkit', place])
  if (made.status === 0) return true
  rmSync(place, { recursive: true })
  return false
}

guard(JSON.parse(process.argv[2] as string) as GuardianPlan)
