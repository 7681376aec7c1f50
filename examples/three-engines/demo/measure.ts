import { setTimeout as pause } from 'node:timers/promises'
import { leaseMs, picturesAllowed } from '../src/settings.ts'
import type { Database, Engine, Server } from './databases.ts'
import { type Started, startProcess } from './start-process.ts'
import { waitUntil } from './wait-until.ts'

export type Way = 'by hand' | 'holdfast'

/** What the database says afterwards. */
export interface Measured {
  /** More lamps than there were. */
  readonly oversold: number
  /** Pictures over the limit. */
  readonly overLimit: number
  /** Orders that nobody will be told of. */
  readonly untold: number
  /** Jobs that were done more than once. */
  readonly jobsTwice: number
  /** Seconds with more than one report. */
  readonly reportsTwice: number
  /** What was to be done and was not: lamps, pictures, jobs, reports. */
  readonly missing: number
}

const lamps = 5
const jobs = 6
const reports = 2

/** Runs all tasks in one way; each in processes of its own, over a new database. */
export async function measure(server: Server, engine: Engine, way: Way): Promise<Measured> {
  const db = await server.newDatabase()
  const start = (task: string, more: Readonly<Record<string, string>> = {}): Promise<Started> =>
    startProcess({ ENGINE: engine, WAY: way, DATABASE_URL: db.url, TASK: task, ...more })
  const together = async (task: string): Promise<void> => {
    const processes = await Promise.all([1, 2, 3].map(() => start(task, { TIMES: '5' })))
    for (const one of processes) one.go()
    await Promise.all(processes.map((one) => one.ended()))
  }

  const install = await start('install')
  install.go()
  await install.ended()
  await together('sell')
  await together('upload')
  await killedWhileOrdering(start)
  await pausedAtWork(start, db)
  await reportsOnTime(start, db)

  const sold = await db.count('SELECT COUNT(*) FROM sale')
  const kept = await db.count('SELECT COUNT(*) FROM picture')
  const done = await db.count('SELECT COUNT(DISTINCT job_id) FROM effect')
  const reported = await db.count('SELECT COUNT(DISTINCT tick) FROM report')
  const under = (is: number, bar: number): number => Math.max(0, bar - is)
  return {
    oversold: under(lamps, sold),
    overLimit: under(picturesAllowed, kept),
    untold: await db.count(
      'SELECT COUNT(*) FROM orders WHERE id NOT IN (SELECT order_id FROM outbox)',
    ),
    jobsTwice: await db.count(`SELECT COUNT(*) FROM (
      SELECT job_id FROM effect GROUP BY job_id HAVING COUNT(*) > 1) AS twice`),
    reportsTwice: await db.count(`SELECT COUNT(*) FROM (
      SELECT tick FROM report GROUP BY tick HAVING COUNT(*) > 1) AS twice`),
    missing:
      under(sold, lamps) +
      under(kept, picturesAllowed) +
      under(done, jobs) +
      under(reported, reports),
  }
}

type Start = (task: string, more?: Readonly<Record<string, string>>) => Promise<Started>

async function killedWhileOrdering(start: Start): Promise<void> {
  const victim = await start('order')
  const working = victim.working()
  victim.go()
  await working
  await victim.kill()
}

async function pausedAtWork(start: Start, db: Database): Promise<void> {
  const pending = Array.from({ length: jobs }, () => `('pending')`)
  await db.execute(`INSERT INTO job (state) VALUES ${pending.join(', ')}`)
  const workers = await Promise.all([start('jobs'), start('jobs')])
  try {
    const [sleeper, other] = workers
    const working = sleeper?.working()
    sleeper?.go()
    await working
    sleeper?.pause()
    other?.go()
    await pause(leaseMs * 2.5)
    sleeper?.resume()
    await waitUntil(
      'all jobs are done',
      async () => (await db.count(`SELECT COUNT(*) FROM job WHERE state <> 'done'`)) === 0,
    )
  } finally {
    await Promise.all(workers.map((worker) => worker.stop()))
  }
}

async function reportsOnTime(start: Start, db: Database): Promise<void> {
  const reporters = await Promise.all(
    ['0', '150', '300'].map((late) => start('report', { LATE_MS: late })),
  )
  for (const reporter of reporters) reporter.go()
  try {
    await waitUntil(
      'the reports are written',
      async () => (await db.count('SELECT COUNT(DISTINCT tick) FROM report')) > reports,
    )
  } finally {
    await Promise.all(reporters.map((reporter) => reporter.stop()))
  }
}
