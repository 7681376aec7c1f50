import type { Isolation } from '../../../src/core/driver.ts'
import { legacyKey } from '../../../src/core/locks/lock-key.ts'
import { type LockRequest, lockStatement } from '../../../src/engines/postgres/locks/locks.ts'
import type { Session } from './session.ts'

/** What came of a form: what its read saw, and whether the transaction could then write. */
export type Outcome = 'fresh' | 'stale' | 'stale, then 40001' | '40001' | 'not taken'

export interface Form {
  readonly name: string
  readonly expected: Readonly<Record<Isolation, Outcome>>
  /** `wait_event` while the writer holds the lock; where it is not taken there is no wait. */
  readonly waitsFor: 'advisory' | 'relation' | 'transactionid'
  /** The read is a transaction of its own, so there is no write after it to be refused. */
  readonly ends?: true
  /** From BEGIN to the read; tells whether the read saw what the writer did. */
  read(session: Session, begin: string, isolation: Isolation): Promise<boolean>
}

const outcomes = (readCommitted: Outcome, repeatableRead: Outcome, serializable: Outcome) => ({
  'read committed': readCommitted,
  'repeatable read': repeatableRead,
  serializable,
})
/** READ COMMITTED sees the commit; the others froze their snapshot before the wait. */
const freshByStatement = outcomes('fresh', 'stale', 'stale, then 40001')
const alwaysStale = outcomes('stale', 'stale', 'stale, then 40001')
const alwaysFresh = outcomes('fresh', 'fresh', 'fresh')
const notTaken = outcomes('not taken', 'not taken', 'not taken')

/** A form that is one statement whose `seen` column counts the seats. */
function statement(name: string, text: string, expected: Form['expected']): Form {
  return {
    name,
    expected,
    waitsFor: 'advisory',
    async read(session, begin) {
      await session.rows(begin)
      return await seesBoth(session, text)
    },
  }
}

async function seesBoth(session: Session, text: string): Promise<boolean> {
  const [row] = await session.rows(text)
  return Number(row?.['seen']) === 2
}

const count = 'SELECT count(*) AS seen FROM seats'
const lock = 'SELECT pg_advisory_xact_lock(1)'

const ours: LockRequest = {
  wanted: [],
  attempt: false,
  limitMs: 30_000,
  yields: false,
  budgetMs: undefined,
  label: 'truth',
  allowStaleSnapshot: true,
  first: false,
  brief: false,
}

/** Our own statement as the lock. */
function ourStatement(name: string, request: LockRequest, expected: Form['expected']): Form {
  return {
    name,
    expected,
    waitsFor: 'advisory',
    async read(session, begin) {
      await session.rows(begin)
      await session.run(lockStatement(request))
      return await seesBoth(session, count)
    },
  }
}

const oneKey = [{ key: legacyKey.bigint(1), mode: 'exclusive' as const }]
const twoKeys = [...oneKey, { key: legacyKey.bigint(7), mode: 'exclusive' as const }]
const refusesFrozenSnapshots = outcomes('fresh', 'not taken', 'not taken')

/** The truth table of locks and snapshots. */
export const forms: readonly Form[] = [
  {
    name: 'lock, then read: two statements',
    expected: freshByStatement,
    waitsFor: 'advisory',
    async read(session, begin) {
      await session.rows(begin)
      await session.rows(lock)
      return await seesBoth(session, count)
    },
  },
  ourStatement('ours, one key', { ...ours, wanted: oneKey }, freshByStatement),
  ourStatement('ours, two keys', { ...ours, wanted: twoKeys }, freshByStatement),
  ourStatement(
    'ours, one key, by default',
    { ...ours, wanted: oneKey, allowStaleSnapshot: false },
    refusesFrozenSnapshots,
  ),
  ourStatement(
    'ours, two keys, by default',
    { ...ours, wanted: twoKeys, allowStaleSnapshot: false },
    refusesFrozenSnapshots,
  ),

  statement(
    'same statement, select list',
    'SELECT pg_advisory_xact_lock(1), (SELECT count(*) FROM seats) AS seen',
    alwaysStale,
  ),
  statement(
    'same statement, subquery',
    `SELECT count(*) AS seen FROM (${lock} OFFSET 0) AS l, seats`,
    alwaysStale,
  ),
  statement(
    'same statement, CTE',
    `WITH l AS (${lock}) SELECT count(*) AS seen FROM l, seats`,
    alwaysStale,
  ),
  statement(
    'same statement, MATERIALIZED CTE',
    `WITH l AS MATERIALIZED (${lock}) SELECT count(*) AS seen FROM l, seats`,
    alwaysStale,
  ),
  statement('unreferenced CTE', `WITH l AS (${lock}) ${count}`, notTaken),
  statement('unreferenced MATERIALIZED CTE', `WITH l AS MATERIALIZED (${lock}) ${count}`, notTaken),

  {
    // A stale NOT EXISTS inserts a duplicate; SERIALIZABLE refuses the insert itself.
    name: 'INSERT … WHERE NOT EXISTS, lock in a CTE',
    expected: outcomes('stale', 'stale', '40001'),
    waitsFor: 'advisory',
    async read(session, begin) {
      await session.rows(begin)
      const inserted = await session.rows(
        `WITH l AS MATERIALIZED (${lock}) INSERT INTO seats SELECT 4, 1 FROM l
         WHERE NOT EXISTS (SELECT FROM seats WHERE id > 1) RETURNING id`,
      )
      return inserted.length === 0
    },
  },
  {
    // The row that is updated is fetched again in its newest version.
    name: 'UPDATE, lock in a CTE: the updated row',
    expected: outcomes('fresh', '40001', '40001'),
    waitsFor: 'advisory',
    async read(session, begin) {
      await session.rows(begin)
      const [row] = await session.rows(
        `WITH l AS MATERIALIZED (${lock}) UPDATE seats SET version = version + 1 FROM l
         WHERE id = 1 RETURNING version`,
      )
      return row?.['version'] === 3
    },
  },
  {
    name: 'UPDATE, lock in a CTE: what else it reads',
    expected: outcomes('stale', 'stale', '40001'),
    waitsFor: 'advisory',
    async read(session, begin) {
      await session.rows(begin)
      return await seesBoth(
        session,
        `WITH l AS MATERIALIZED (${lock}) UPDATE notes SET seats = (SELECT count(*) FROM seats)
         FROM l RETURNING seats AS seen`,
      )
    },
  },

  statement('plpgsql VOLATILE', 'SELECT plpgsql_volatile() AS seen', freshByStatement),
  statement(
    'plpgsql VOLATILE: what the calling statement reads',
    'SELECT plpgsql_volatile(), (SELECT count(*) FROM seats) AS seen',
    alwaysStale,
  ),
  statement('plpgsql STABLE', 'SELECT plpgsql_stable() AS seen', alwaysStale),
  statement('plpgsql IMMUTABLE', 'SELECT plpgsql_immutable() AS seen', alwaysStale),
  statement(
    'SQL function VOLATILE, lock and read inside',
    'SELECT sql_volatile() AS seen',
    freshByStatement,
  ),
  statement(
    'SQL function VOLATILE, called after the lock in one select list',
    'SELECT pg_advisory_xact_lock(1), sql_volatile_count() AS seen',
    freshByStatement,
  ),
  statement('SQL function STABLE', 'SELECT sql_stable() AS seen', alwaysStale),
  statement(
    'SQL function inlined: the lock',
    'SELECT sql_inlined_lock(), (SELECT count(*) FROM seats) AS seen',
    alwaysStale,
  ),
  statement(
    'SQL function inlined: lock and read',
    'SELECT n AS seen FROM sql_inlined_read()',
    alwaysStale,
  ),

  {
    name: 'several statements in one simple-protocol string',
    expected: freshByStatement,
    waitsFor: 'advisory',
    read: async (session, begin) => await seesBoth(session, `${begin}; ${lock}; ${count}`),
  },
  {
    // Without BEGIN the string is one implicit transaction, of the session's default level.
    name: 'several statements in one string, implicit transaction',
    expected: outcomes('fresh', 'stale', 'stale'),
    waitsFor: 'advisory',
    ends: true,
    async read(session, _, isolation) {
      await session.rows(`SET default_transaction_isolation = '${isolation}'`)
      return await seesBoth(session, `${lock}; ${count}`)
    },
  },

  {
    name: 'LOCK TABLE first, then read',
    expected: alwaysFresh,
    waitsFor: 'relation',
    async read(session, begin) {
      await session.rows(begin)
      await session.rows('LOCK TABLE seats IN SHARE ROW EXCLUSIVE MODE')
      return await seesBoth(session, count)
    },
  },
  {
    name: 'LOCK TABLE first by the extended protocol, then read',
    expected: alwaysFresh,
    waitsFor: 'relation',
    async read(session, begin) {
      await session.extended(begin)
      await session.extended('LOCK TABLE seats IN SHARE ROW EXCLUSIVE MODE')
      return await seesBoth(session, count)
    },
  },
  {
    name: 'session lock before BEGIN',
    expected: alwaysFresh,
    waitsFor: 'advisory',
    async read(session, begin) {
      await session.rows('SELECT pg_advisory_lock(1)')
      await session.rows(begin)
      return await seesBoth(session, count)
    },
  },
  {
    name: 'SELECT … FOR UPDATE: the locked row',
    expected: outcomes('fresh', '40001', '40001'),
    waitsFor: 'transactionid',
    async read(session, begin) {
      await session.rows(begin)
      return await seesBoth(session, 'SELECT version AS seen FROM seats WHERE id = 1 FOR UPDATE')
    },
  },
  {
    name: 'SELECT … FOR UPDATE: another table of the join',
    expected: outcomes('stale', '40001', '40001'),
    waitsFor: 'transactionid',
    async read(session, begin) {
      await session.rows(begin)
      return await seesBoth(
        session,
        `SELECT totals.seats AS seen FROM seats JOIN totals USING (id)
         WHERE id = 1 FOR UPDATE OF seats`,
      )
    },
  },
]
