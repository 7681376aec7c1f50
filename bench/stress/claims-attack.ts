import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { withClient } from '@holdfast/testkit'
import type { ClientBase } from 'pg'
import { randomFor } from '../harness/random.ts'
import { batch, claimTables, leaseMs, sweepMs } from './claims-table.ts'
import type { WorkerMode } from './claims-worker.ts'

const processes = 8
/** A new process costs more than a paused one. */
const killShare = 0.25
/** What a busy machine may add to the moment at which somebody sweeps. */
const slackMs = 2_500
/** Rows that may be under way somewhere while a younger one is claimed. */
const window = processes * batch * 2

export interface ClaimsAttack {
  readonly url: string
  readonly seed: number
  readonly tasks: number
  readonly mode: 'fenced' | 'unfenced'
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
  readonly overdueMs: number
  readonly displaced: number
  readonly seconds: number
}

/** Processes that work on tasks while some are killed and some are paused past their lease. */
export async function attackClaims(attack: ClaimsAttack): Promise<ClaimsReport> {
  const { url, seed, tasks, mode, untilDuplicate = false, progress } = attack
  await withClient(url, async (client) => {
    await client.query(claimTables)
    await client.query('INSERT INTO task (id) SELECT generate_series(1, $1::int)', [tasks])
    await client.query('VACUUM ANALYZE task')
  })
  const choices = randomFor(seed, 0)
  const chance = (): number => choices.integer(0, 999_999) / 1_000_000
  const began = performance.now()
  const workers = Array.from({ length: processes }, (_, at) => start(url, modeOf(mode, at)))
  const counts = { kills: 0, pauses: 0 }
  let overdueMs = 0
  const pausing = new Set<Promise<void>>()
  await withClient(url, async (client) => {
    for (let round = 0; ; round += 1) {
      const { left, overdue, duplicates } = await look(client, untilDuplicate)
      overdueMs = Math.max(overdueMs, overdue)
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
  })
  await Promise.all(pausing)
  await Promise.all(workers.map(leave))
  const seconds = (performance.now() - began) / 1_000
  const found = await withClient(url, findings)
  return {
    ...counts,
    ...found,
    overdueMs,
    seconds,
    violations: violationsOf(found, overdueMs, tasks),
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

interface Look {
  readonly left: number
  /** How long ago the oldest lease ended that nobody has swept. */
  readonly overdue: number
  readonly duplicates: number
}

async function look(client: ClientBase, duplicatesToo: boolean): Promise<Look> {
  const { rows } = await client.query<Look>(`
    SELECT (SELECT count(*)::int FROM task WHERE status IN ('pending', 'claimed')) AS left,
      coalesce((SELECT extract(epoch FROM max(clock_timestamp() - lease_until)) * 1000 FROM task
        WHERE status = 'claimed'), 0)::float AS overdue,
      ${duplicatesToo ? '(SELECT count(*) - count(DISTINCT task) FROM effect)::int' : '0'} AS duplicates`)
  return rows[0] as Look
}

interface Found {
  readonly duplicates: number
  readonly missing: number
  readonly recovered: number
  readonly displaced: number
}

async function findings(client: ClientBase): Promise<Found> {
  const { rows } = await client.query<Found>(`
    SELECT (SELECT count(*) - count(DISTINCT task) FROM effect)::int AS duplicates,
      (SELECT count(*) FROM task t WHERE NOT EXISTS (SELECT FROM effect e WHERE e.task = t.id))::int AS missing,
      (SELECT count(*) FROM history WHERE change = 1 AND attempt > 1)::int AS recovered,
      (SELECT coalesce(max(abs(task - place)), 0)::int FROM (
        SELECT task, row_number() OVER (ORDER BY seq) AS place FROM history
        WHERE change = 1 AND attempt = 1) AS first) AS displaced`)
  return rows[0] as Found
}

function violationsOf(found: Found, overdueMs: number, tasks: number): string[] {
  const { duplicates, missing, displaced } = found
  return [
    ...(duplicates > 0 ? [`${duplicates} of ${tasks} effects happened twice`] : []),
    ...(missing > 0 ? [`${missing} of ${tasks} effects did not happen`] : []),
    ...(overdueMs > sweepMs + slackMs
      ? [`a row was stranded for ${Math.round(overdueMs)} ms after its lease`]
      : []),
    ...(displaced > window ? [`a row was claimed ${displaced} places from its own`] : []),
  ]
}
