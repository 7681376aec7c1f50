import { startPostgres } from '@holdfast/testkit'
import type { Pool } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../packages/holdfast/src/index.ts'
import type { PgClientOf } from '../../packages/holdfast/src/drivers/pg.ts'
import type { BenchScenario } from '../harness/bench-scenario.ts'
import { byHand } from '../harness/by-hand.ts'
import { compare, type Effort, type Side } from '../harness/compare.ts'
import { meterOf } from '../harness/meter.ts'
import { openPool } from '../harness/open-pool.ts'
import { quantile } from '../harness/summary.ts'

const poolSize = 5
const callers = 30
const deadlineMs = 100
const bodyMs = 30
/** Of the mixed load, each tenth. */
const slowMs = 300

const full: Effort = { rounds: 12, sliceMs: 2_000 }
const quick: Effort = { rounds: 5, sliceMs: 800, limitMs: 10_000, warmUps: 1 }

export const deadlines: BenchScenario = {
  about: 'what is done in time where there is too much to do',
  method:
    `Server and client on one machine, fsync on. A pool of ${poolSize}, ${callers} callers that come again at once, ` +
    `whatever they were told. Each opens a transaction whose body takes ${bodyMs} ms on the server (pg_sleep); ` +
    `in the mixed load each tenth takes ${slowMs} ms. Counted are transactions that were committed within the slice. Measured: ` +
    `deadline: ${deadlineMs} ms, from the call. By hand: SET LOCAL statement_timeout = ${deadlineMs}, which does not ` +
    'count the wait for a connection, so that what is committed may be late. None: no limit at all.',
  async run({ quick: short, progress }) {
    const effort = short ? quick : full
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { fsync: 'on' } })
    const meter = meterOf({ postmaster: server.pid })
    const pool = await openPool(await server.createDatabase('bench'), poolSize)
    const hf = createHoldfast(fromPg(pool), { locks: { watch: false } })
    const inTime = { limited: [] as number[], byHand: [] as number[] }
    try {
      const comparisons = []
      for (const mixed of [false, true]) {
        const load = mixed ? '_mixed' : ''
        const limited = withDeadline(hf, mixed, inTime.limited)
        const byHand = withSetting(pool, mixed, inTime.byHand)
        const bar = mixed ? {} : { bar: 0.95 }
        for (const [name, baseline] of [
          [`deadline_vs_server${load}`, byHand],
          [`deadline_vs_none${load}`, withNothing(hf, mixed)],
        ] as const) {
          const contest = { name, measured: limited, baseline, workers: callers }
          comparisons.push(
            ...(await compare(
              name.includes('server') ? { ...contest, ...bar } : contest,
              effort,
              progress,
              meter,
            )),
          )
        }
      }
      const rows = Object.entries({
        'with deadline': inTime.limited,
        'by hand': inTime.byHand,
      }).map(([label, times]) => [
        label,
        `${((100 * times.filter((ms) => ms <= deadlineMs).length) / times.length).toFixed(0)} %`,
        ...[0.5, 0.99].map((q) => `${quantile(times, q).toFixed(0)} ms`),
      ])
      return {
        comparisons,
        facts: [
          {
            title: `Of what was committed, by the caller's clock, both loads`,
            columns: ['', `within ${deadlineMs} ms`, 'median', 'p99'],
            rows,
          },
        ],
      }
    } finally {
      await pool.end()
    }
  },
}

type Tx = PgClientOf<Pool>

function sleepText(mixed: boolean): string {
  const ms = mixed && Math.random() < 0.1 ? slowMs : bodyMs
  return `SELECT pg_sleep(${ms / 1_000})`
}

function withDeadline(hf: Holdfast<Tx>, mixed: boolean, times: number[]): Side {
  return committed(`deadline: ${deadlineMs} ms`, times, async () => {
    await hf.transaction(async (tx) => await tx.query(sleepText(mixed)), { deadline: deadlineMs })
  })
}

function withNothing(hf: Holdfast<Tx>, mixed: boolean): Side {
  return committed('no deadline', [], async () => {
    await hf.transaction(async (tx) => await tx.query(sleepText(mixed)))
  })
}

function withSetting(pool: Pool, mixed: boolean, times: number[]): Side {
  return committed(`statement_timeout = ${deadlineMs} by hand`, times, async () => {
    await byHand(pool, async (client) => {
      await client.query(`SET LOCAL statement_timeout = ${deadlineMs}`)
      await client.query(sleepText(mixed))
    })
  })
}

/** Callers that come again whatever happens; only what was committed counts. */
function committed(label: string, times: number[], call: () => Promise<void>): Side {
  return {
    label,
    async measure(sliceMs) {
      const until = performance.now() + sliceMs
      let count = 0
      const caller = async (): Promise<void> => {
        while (performance.now() < until) {
          const asked = performance.now()
          try {
            await call()
            times.push(performance.now() - asked)
            // What ends later has no crowd beside it any more.
            if (performance.now() <= until) count += 1
          } catch {
            // Too late; the next one comes.
          }
        }
      }
      await Promise.all(Array.from({ length: callers }, caller))
      return count / (sliceMs / 1_000)
    },
  }
}
