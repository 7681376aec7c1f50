import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { randomFor } from '../harness/random.ts'
import { type ClaimsStore, type Found, openClaimsStore } from './claims-store.ts'
import { batch, leaseMs, sweepMs } from './claims-table.ts'
import type { WorkerMode } from './claims-worker.ts'

const processes = 8
/** A new process costs more than a paused one. */
const killShare = 0.25
/** What a busy machine may add to the moment at which somebody sweeps. */
const slackMs = 1_000
/** Rows that may be under way somewhere while a younger one is claimed. */
const window = processes * batch * 2

export interface ClaimsAttack {
  readonly url: string
  readonly seed: number
  readonly tasks: number
  readonly mode: 'fenced' | 'unfenced'
  /** How long the server lets a session be idle in a transaction. */
  readonly idleMs: number
  /** Ends the attack early: the control has shown what it is to show. */
  readonly untilDuplicate?: boolean
  readonly progress: (text: string) => void
}

export interface ClaimsReport {
  readonly violations: readonly string[]
  readonly kills: number
  readonly pauses: number
  readonly recovered: number
  readonly duplicates: number
  /** How long a row was seen that no sweep took, although its lease was over and nobody had it locked. */
  readonly strandedMs: number
  /** How long after its lease a row was swept, locked meanwhile by a transaction of a paused process. */
  readonly overdueMs: number
  readonly displaced: number
  readonly overtakenMs?: number
  readonly seconds: number
}

/** Processes that work on tasks while some are killed and some are paused past their lease. */
export async function attackClaims(attack: ClaimsAttack): Promise<ClaimsReport> {
  const { url, seed, tasks, mode, untilDuplicate = false, progress } = attack
  await using store = await openClaimsStore(url, 2)
  await store.fill(tasks)
  const choices = randomFor(seed, 0)
  const chance = (): number => choices.integer(0, 999_999) / 1_000_000
  const began = performance.now()
  await using _sweeper = sweeper(store)
  const workers = Array.from({ length: processes }, (_, at) => start(url, modeOf(mode, at)))
  const counts = { kills: 0, pauses: 0 }
  let [overdueMs, strandedMs] = [0, 0]
  /** Claims whose row a sweep could have, since when by the server's clock. */
  let free = new Map<string, number>()
  const pausing = new Set<Promise<void>>()
  for (let round = 0; ; round += 1) {
    const { left, overdue, now, tokens, duplicates } = await store.look(untilDuplicate)
    free = new Map(tokens.map((token) => [token, free.get(token) ?? now]))
    overdueMs = Math.max(overdueMs, overdue)
    strandedMs = Math.max(strandedMs, ...[...free.values()].map((since) => now - since))
    if (left === 0 || (untilDuplicate && duplicates > 0)) break
    if (round % 40 === 39) progress(`claims: ${tasks - left} of ${tasks} done`)
    const at = Math.floor(chance() * processes)
    const worker = workers[at] as ChildProcess
    const [killIt, sleepMs] = [chance() < killShare, leaseMs * (1.2 + chance())]
    // One that is paused stays so: it is to wake up when its lease is over.
    if (working.has(worker)) {
      if (killIt) {
        counts.kills += 1
        await kill(worker)
        workers[at] = start(url, modeOf(mode, at))
      } else {
        counts.pauses += 1
        const sleeping = sleep(worker, sleepMs)
        pausing.add(sleeping)
        void sleeping.finally(() => pausing.delete(sleeping))
      }
    }
    await pause(100 + chance() * 300)
  }
  await Promise.all(pausing)
  await Promise.all(workers.map(leave))
  const seconds = (performance.now() - began) / 1_000
  const found = await store.findings(window)
  return {
    ...counts,
    ...found,
    overdueMs,
    strandedMs,
    seconds,
    violations: violationsOf(found, { overdueMs, strandedMs }, attack),
  }
}

/** Sweeps as any process may. There are moments at which all of the others are dead or paused. */
function sweeper({ claims }: ClaimsStore<unknown>): AsyncDisposable {
  let last: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    last = claims.recover()
  }, sweepMs)
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await last
    },
  }
}

function modeOf(mode: ClaimsAttack['mode'], at: number): WorkerMode {
  if (mode === 'unfenced') return 'unfenced'
  return at % 2 === 0 ? 'batch' : 'run'
}

/** Those that have something to lose: started, and not paused. */
const working = new WeakSet<ChildProcess>()

function start(url: string, mode: WorkerMode): ChildProcess {
  const worker = fork(new URL('./claims-worker.ts', import.meta.url), [url, mode], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  // It says so when it has claimed something for the first time.
  worker.once('message', () => void working.add(worker))
  return worker
}

async function sleep(worker: ChildProcess, ms: number): Promise<void> {
  working.delete(worker)
  worker.kill('SIGSTOP')
  await pause(ms)
  worker.kill('SIGCONT')
  working.add(worker)
}

async function kill(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return
  const gone = once(worker, 'exit')
  worker.kill('SIGKILL')
  await gone
}

async function leave(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return
  const gone = once(worker, 'exit')
  if (worker.connected) worker.disconnect()
  await gone
}

function violationsOf(
  found: Found,
  { overdueMs, strandedMs }: Pick<ClaimsReport, 'overdueMs' | 'strandedMs'>,
  { tasks, idleMs }: Pick<ClaimsAttack, 'tasks' | 'idleMs'>,
): string[] {
  const { duplicates, missing, displaced, overtakenMs } = found
  const isLate = overtakenMs === undefined || overtakenMs > idleMs + slackMs
  return [
    ...(duplicates > 0 ? [`${duplicates} of ${tasks} effects happened twice`] : []),
    ...(missing > 0 ? [`${missing} of ${tasks} effects did not happen`] : []),
    ...(strandedMs > sweepMs + slackMs
      ? [`a row that nobody had locked was stranded for ${Math.round(strandedMs)} ms`]
      : []),
    // Paused between complete and COMMIT: the server ends the transaction, and then somebody sweeps.
    ...(overdueMs > idleMs + sweepMs + slackMs
      ? [`a row was swept ${Math.round(overdueMs)} ms after its lease`]
      : []),
    ...(displaced > window && isLate
      ? [`a row was claimed ${displaced} places from its own, ${overtakenMs ?? 0} ms late`]
      : []),
  ]
}
