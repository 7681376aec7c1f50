import {
  databaseOf,
  pgbouncerProgram,
  startPgBouncer,
  startPostgres,
  urlWithDatabase,
} from '@holdfast/testkit'
import type { BenchScenario } from '../harness/bench-scenario.ts'
import { type Comparison, compare, type Effort } from '../harness/compare.ts'
import { meterOf } from '../harness/meter.ts'
import { lockContests } from './lock-contests.ts'
import { innodbLocks } from './locks-innodb.ts'
import { sqliteLocks } from './locks-sqlite.ts'

const full: Effort = { rounds: 40, sliceMs: 500 }
/** 24 rounds of what is promised and 8 of the rest take about 30 seconds. */
const quick: Effort = { rounds: 24, sliceMs: 150, limitMs: 9_500 }
const quickRest: Effort = { rounds: 8, sliceMs: 150, limitMs: 4_500 }

export const locks: BenchScenario = {
  about: 'what a guard costs, and whether other keys feel a queue',
  method:
    'Server and client on one machine, fsync on. One process, 16 operations under way on a pool of 16 ' +
    'connections that are opened beforehand; both sides use the same pool. Slices of both sides in turn, ' +
    'the side that goes first alternating, young garbage collected before each; one ratio per round; the median ' +
    'of the rounds is reported with p10 and p90. guard has its default options: wait limit, checks, name ' +
    'in pg_stat_activity, watch. Bodies are empty, so nothing hides the cost of the lock.',
  hasEngines: true,
  async run({ quick: short, engine, progress }) {
    if (engine === 'sqlite') return await sqliteLocks(short ? quick : full, progress)
    if (engine !== undefined) return await innodbLocks(engine, short ? quick : full, progress)
    progress('starting PostgreSQL and PgBouncer')
    await using server = await startPostgres({ settings: { fsync: 'on', max_connections: '100' } })
    await using pgbouncer = await startPgBouncer(server)
    const hasNewest = pgbouncerProgram('newest') !== undefined
    if (!hasNewest)
      progress(
        'no newer PgBouncer here, so nothing is measured through it: npm run servers:engines',
      )
    await using tracking = await startPgBouncer(server, hasNewest ? { version: 'newest' } : {})
    const url = await server.createDatabase('bench')
    const pooledUrl = urlWithDatabase(pgbouncer.url(), databaseOf(url))
    const trackedUrl = urlWithDatabase(tracking.url(), databaseOf(url))
    const poolers = {
      nothing: undefined,
      PgBouncer: pgbouncer.pid,
      'a newer PgBouncer': tracking.pid,
    }

    const comparisons: Comparison[] = []
    for (const { through, open } of lockContests) {
      if (through === 'a newer PgBouncer' && !hasNewest) continue
      await using contest = await open({ url, pooledUrl, trackedUrl })
      const effort = short ? (contest.bar === undefined ? quickRest : quick) : full
      const pooler = poolers[through]
      const parts = { postmaster: server.pid, ...(pooler === undefined ? {} : { pooler }) }
      comparisons.push(...(await compare(contest, effort, progress, meterOf(parts))))
    }
    return { comparisons }
  },
}
