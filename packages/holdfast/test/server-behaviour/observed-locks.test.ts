import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../src/drivers/pg.ts'
import { lookAtLocks } from '../../src/engines/postgres/observe/locks.ts'
import { lockKey } from '../../src/index.ts'
import { createObserver, lockBranches, type Observer } from '../../src/observe/index.ts'
import { cast, stagedWaits, stageIncident } from '../support/staged-incident.ts'
import { onEveryVersion } from './support/on-every-version.ts'
import type { Session } from './support/session.ts'
import { Session as OpenSession } from './support/session.ts'

/** What every version shows of who blocks whom, and what an observer makes of it. */
onEveryVersion(
  (place) => {
    let pool: pg.Pool
    let observer: Observer
    beforeAll(async () => {
      pool = new pg.Pool({ connectionString: place.server().url(), max: 2 })
      observer = createObserver(fromPg(pool))
      await pool.query(`
        CREATE TABLE one (id int PRIMARY KEY, v int);
        CREATE TABLE two (id int PRIMARY KEY, v int);
        INSERT INTO one VALUES (1, 0), (2, 0);
        INSERT INTO two VALUES (1, 0)`)
    })
    afterAll(async () => await pool.end())

    /** Starts a statement and resolves once it waits; `ended` is its end. */
    const waits = async (
      session: Session,
      by: Session,
      text: string,
    ): Promise<{ ended: Promise<unknown> }> => {
      const ended = session.rows(text)
      ended.catch(() => undefined)
      await by.seesWaiting(session)
      return { ended }
    }

    test('the staged incident', async () => {
      const incident = await stageIncident(place.server().url())
      const { sessions, roots } = await observer.locks()
      expect(roots).toEqual([incident.pids.billing])
      expect(sessions).toHaveLength(cast.length)
      for (const { pid, blockedBy } of sessions) {
        const role = incident.roleOf(pid)
        if (role === undefined || role === 'billing') continue
        const roles = (kind: string): unknown[] =>
          blockedBy
            .filter((block) => block.kind === kind)
            .map((block) => incident.roleOf(block.pid))
        const { hard, soft } = stagedWaits[role]
        expect({ role, hard: roles('hard'), soft: roles('soft') }).toEqual({ role, hard, soft })
      }
      await incident.end()
    })

    test('pg_blocking_pids is called for those who wait, and for nobody else', async () => {
      await using holder = await place.open()
      await using other = await place.open()
      await using waiter = await place.open()
      await using watching = await place.open()
      await holder.rows('BEGIN; SELECT pg_advisory_xact_lock(1)')
      await other.rows('BEGIN; SELECT pg_advisory_xact_lock(2)')
      const calls = async (): Promise<number> => {
        const { text, values } = lookAtLocks(undefined)
        const plan = await pool.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
          `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
          [...values],
        )
        return rowsOf(plan.rows[0]?.['QUERY PLAN'][0].Plan as PlanNode, 'CTE blocked')
      }
      expect(await calls()).toBe(0)
      const waiting = await waits(waiter, watching, 'SELECT pg_advisory_lock(1)')
      expect(await calls()).toBe(1)
      await holder.rows('ROLLBACK')
      await waiting.ended
    })

    test('a circle ends, and is announced', async () => {
      await using a = await place.open()
      await using b = await place.open()
      await using c = await place.open()
      await using watching = await place.open()
      const [first, second] = [lockKey('circle', 1).lock.id, lockKey('circle', 2).lock.id]
      await a.rows(`BEGIN; SELECT pg_advisory_xact_lock(${first})`)
      await b.rows(`BEGIN; SELECT pg_advisory_xact_lock(${second})`)
      const aWaits = await waits(a, watching, `SELECT pg_advisory_xact_lock(${second})`)
      const bWaits = await waits(b, watching, `SELECT pg_advisory_xact_lock(${first})`)
      const cWaits = await waits(c, watching, `SELECT pg_advisory_xact_lock(${first})`)
      const tree = await observer.locks()
      expect(tree.roots).toEqual([a.pid])
      const codes = (pid: number): string[] =>
        tree.sessions.find((session) => session.pid === pid)?.advice.map(({ code }) => code) ?? []
      expect(codes(a.pid)).toContain('deadlock-ahead')
      expect(codes(b.pid)).toContain('deadlock-ahead')
      expect(codes(c.pid)).not.toContain('deadlock-ahead')
      expect(tree.sessions.map(({ pid, waiters }) => [pid, waiters])).toEqual(
        expect.arrayContaining([
          [a.pid, 2],
          [b.pid, 2],
          [c.pid, 0],
        ]),
      )
      const drawn = lockBranches(tree)
      expect(drawn).toHaveLength(1)
      expect(drawn[0]?.session.pid).toBe(a.pid)
      expect(drawn[0]?.below).toHaveLength(2)
      await watching.rows('SELECT pg_cancel_backend($1)', [a.pid])
      await expect(aWaits.ended).rejects.toMatchObject({ code: '57014' })
      await a.rows('ROLLBACK')
      await bWaits.ended
      await b.rows('ROLLBACK')
      await cWaits.ended
    })

    test('a prepared transaction is a root without a session', async () => {
      await using preparing = await place.open()
      await using waiter = await place.open()
      await preparing.rows(
        "BEGIN; UPDATE one SET v = 1 WHERE id = 1; PREPARE TRANSACTION 'transfer-9'",
      )
      const waiting = await waits(waiter, preparing, 'UPDATE one SET v = 2 WHERE id = 1')
      const { roots, sessions } = await observer.locks()
      expect(roots).toEqual([0])
      expect(sessions[0]).toMatchObject({
        pid: 0,
        application: 'transfer-9',
        state: 'prepared',
        waiters: 1,
        holds: [{ kind: 'row', name: 'row of public.one' }],
        advice: [{ code: 'prepared-transaction' }],
      })
      expect(sessions[1]).toMatchObject({
        waitsFor: { kind: 'row', name: 'row of public.one', table: 'public.one', row: '(0,1)' },
        blockedBy: [{ pid: 0, kind: 'hard' }],
      })
      await preparing.rows("ROLLBACK PREPARED 'transfer-9'")
      await waiting.ended
    })

    test('workers are part of their leader', async () => {
      await using leader = await place.open()
      await using waiter = await place.open()
      await using watching = await place.open()
      const forced = place.server().version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode'
      await leader.rows(`SET ${forced} = on`)
      const running = leader.rows('SELECT pg_sleep(600) FROM one')
      running.catch(() => undefined)
      const workers = async (): Promise<number[]> => {
        const rows = await watching.rows(
          `SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
           WHERE a.leader_pid = $1 AND l.relation = 'one'::regclass`,
          [leader.pid],
        )
        return rows.map((row) => Number(row['pid']))
      }
      while ((await workers()).length === 0);
      await waits(waiter, watching, 'BEGIN; LOCK TABLE one')
      // The control: pg_locks has the worker.
      expect(await workers()).toHaveLength(1)
      const { sessions } = await observer.locks()
      expect(sessions.map(({ pid }) => pid)).toEqual([leader.pid, waiter.pid])
      expect(sessions[0]).toMatchObject({ waiters: 1, holds: [{ name: 'table public.one' }] })
      expect(sessions[1]?.blockedBy).toEqual([{ pid: leader.pid, kind: 'hard' }])
      const cancelled = running.catch((error: unknown) => error)
      await watching.rows('SELECT pg_cancel_backend($1)', [leader.pid])
      expect(await cancelled).toMatchObject({ code: '57014' })
    })

    describe('what a wait for a transaction is about', () => {
      test('a key that is being inserted: the only table that is written', async () => {
        await using first = await place.open()
        await using second = await place.open()
        await first.rows('BEGIN; INSERT INTO one VALUES (7, 0)')
        const waiting = await waits(second, first, 'INSERT INTO one VALUES (7, 0)')
        const { sessions } = await observer.locks()
        expect(sessions[1]?.waitsFor).toMatchObject({ kind: 'row', name: 'row of public.one' })
        expect(sessions[1]?.waitsFor?.row).toBeUndefined()
        await first.rows('ROLLBACK')
        await waiting.ended
      })

      test('where more are written it is not guessed', async () => {
        await using first = await place.open()
        await using second = await place.open()
        await first.rows('BEGIN; INSERT INTO one VALUES (8, 0)')
        await second.rows('BEGIN; UPDATE two SET v = 1 WHERE id = 1')
        const waiting = await waits(second, first, 'INSERT INTO one VALUES (8, 0)')
        const { sessions } = await observer.locks()
        expect(sessions[1]?.waitsFor).toMatchObject({
          kind: 'transaction',
          name: `a row or transaction of pid ${first.pid}`,
          source: 'none',
        })
        await first.rows('ROLLBACK')
        await waiting.ended
        await second.rows('ROLLBACK')
      })

      test('an index that is built concurrently waits for the end of everybody before it', async () => {
        await using old = await place.open()
        await using building = await place.open()
        await old.rows('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM two')
        const waiting = await waits(building, old, 'CREATE INDEX CONCURRENTLY ON one (v)')
        const { sessions } = await observer.locks()
        expect(sessions[1]?.waitsFor).toMatchObject({
          kind: 'transaction',
          name: `the end of the transaction of pid ${old.pid}`,
        })
        await old.rows('ROLLBACK')
        await waiting.ended
      })
    })

    test('on a standby it looks at the standby', async () => {
      const standby = await place.server().standby()
      const there = new pg.Pool({ connectionString: standby.url(), max: 1 })
      try {
        await using holder = await OpenSession.open(standby.url())
        await using waiter = await OpenSession.open(standby.url())
        await using watching = await OpenSession.open(standby.url())
        await holder.rows('BEGIN; SELECT pg_advisory_xact_lock(5)')
        const waiting = await waits(waiter, watching, 'SELECT pg_advisory_lock(5)')
        const { sessions } = await createObserver(fromPg(there)).locks()
        expect(sessions.map(({ pid, waiters }) => [pid, waiters])).toEqual([
          [holder.pid, 1],
          [waiter.pid, 0],
        ])
        expect((await observer.locks()).sessions).toEqual([])
        await holder.rows('ROLLBACK')
        await waiting.ended
      } finally {
        await there.end()
        await standby.stop('immediate')
      }
    })
  },
  { max_prepared_transactions: '4', deadlock_timeout: '60s' },
)

interface PlanNode {
  readonly 'Subplan Name'?: string
  readonly 'Actual Rows': number
  readonly Plans?: readonly PlanNode[]
}

/** How many rows a named part of a plan has given. */
function rowsOf(plan: PlanNode, name: string): number {
  if (plan['Subplan Name'] === name) return plan['Actual Rows']
  return Math.max(-1, ...(plan.Plans ?? []).map((node) => rowsOf(node, name)))
}
