import { deferred, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type HoldfastError, isHoldfastError, lockKey } from '../../../src/index.ts'
import type { RetryInfo, RetryPolicy } from '../../../src/tx/index.ts'
import { callerTransaction, eventsOn, pgFixture, pidOf } from '../../support/pg-fixture.ts'
import { inTime } from '../../support/in-time.ts'

const fixture = pgFixture(`
  CREATE TABLE doctors (name text PRIMARY KEY, on_call boolean NOT NULL);
  CREATE TABLE notes (text text);
  CREATE TABLE slow_commit (note text);
  CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock(991); RETURN NULL; END';
  CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON slow_commit DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`)

async function notes(text: string): Promise<number> {
  const { rows } = await fixture.observer.query('SELECT FROM notes WHERE text = $1', [text])
  return rows.length
}

describe('commit and rollback', () => {
  test('commits what the body did and returns its result', async () => {
    const result = await fixture.hf.tx.run(async (tx) => {
      await tx.query("INSERT INTO notes VALUES ('kept')")
      return 42
    })
    expect(result).toBe(42)
    expect(await notes('kept')).toBe(1)
  })

  test("rolls back and rethrows the body's own error untouched", async () => {
    const error = new Error('mine')
    const run = fixture.hf.tx.run(async (tx) => {
      await tx.query("INSERT INTO notes VALUES ('dropped')")
      throw error
    })
    await expect(run).rejects.toBe(error)
    expect(await notes('dropped')).toBe(0)
  })

  test('a swallowed failure is an error, not a silent rollback', async () => {
    const run = fixture.hf.tx.run(async (tx) => {
      await tx.query("INSERT INTO notes VALUES ('swallowed')")
      await tx.query('SELECT 1 / 0').catch(() => 'swallowed')
      return 'looks fine'
    })
    await expect(run).rejects.toMatchObject({ code: 'TX_ROLLED_BACK' })
    expect(await notes('swallowed')).toBe(0)
  })

  test('control: pg itself resolves such a COMMIT', async () => {
    const client = await callerTransaction(fixture)
    await client.query('SELECT 1 / 0').catch(() => 'swallowed')
    await expect(client.query('COMMIT')).resolves.toMatchObject({ command: 'ROLLBACK' })
  })

  test.each(['read committed', 'repeatable read', 'serializable'] as const)(
    'runs at %s',
    async (isolation) => {
      const seen = await fixture.hf.tx.run(
        async (tx) => (await tx.query('SHOW transaction_isolation')).rows[0].transaction_isolation,
        { isolation },
      )
      expect(seen).toBe(isolation)
    },
  )

  test('the connection goes back to the pool, clean', async () => {
    const pool = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
    const hf = createHoldfast(fromPg(pool))
    for (let round = 0; round < 5; round += 1) {
      await hf.tx.run(async () => 'ok')
      await hf.tx.run(async () => Promise.reject(new Error('no'))).catch(() => undefined)
    }
    expect(pool.totalCount).toBe(1)
    expect(pool.idleCount).toBe(1)
    await pool.end()
  })
})

describe('nesting', () => {
  test('a second transaction on the same database is refused, not hung', async () => {
    await expect(
      fixture.hf.tx.run(() => fixture.hf.tx.run(async () => 'inner')),
    ).rejects.toMatchObject({ code: 'TX_NESTED' })
    await expect(
      fixture.hf.guard(lockKey('n', 1), () =>
        fixture.hf.guard(lockKey('n', 2), async () => 'inner'),
      ),
    ).rejects.toMatchObject({ code: 'TX_NESTED' })
  })

  test('another database is another matter', async () => {
    const pool = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
    const other = createHoldfast(fromPg(pool))
    await expect(fixture.hf.tx.run(() => other.tx.run(async () => 'inner'))).resolves.toBe('inner')
    await pool.end()
  })

  test('work that outlives the transaction may open its own', async () => {
    const over = deferred()
    const later = deferred<string>()
    await fixture.hf.tx.run(async () => {
      later.resolve(over.promise.then(() => fixture.hf.tx.run(async () => 'later')))
    })
    over.resolve()
    await expect(later.promise).resolves.toBe('later')
  })
})

describe('retry', () => {
  /** Write skew: each doctor may leave only if another stays. Overlap is forced by the gate. */
  async function leaveTogether(
    retry: false | RetryPolicy,
  ): Promise<{ left: number; retries: RetryInfo[]; errors: HoldfastError[] }> {
    await fixture.observer.query(
      "TRUNCATE doctors; INSERT INTO doctors VALUES ('alice', true), ('bob', true)",
    )
    const bothRead = [deferred(), deferred()] as const
    const retries: RetryInfo[] = []
    const leave = (me: string, mine: number): Promise<boolean> =>
      fixture.hf.tx.run(
        async (tx, { attempt }) => {
          const { rows } = await tx.query('SELECT count(*)::int AS n FROM doctors WHERE on_call')
          if (attempt === 1) {
            bothRead[mine]?.resolve()
            await Promise.all(bothRead.map(({ promise }) => promise))
          }
          if (rows[0].n < 2) return false
          await tx.query('UPDATE doctors SET on_call = false WHERE name = $1', [me])
          return true
        },
        { isolation: 'serializable', retry, onRetry: (info: RetryInfo) => void retries.push(info) },
      )
    const outcomes = await Promise.allSettled([leave('alice', 0), leave('bob', 1)])
    const { rows } = await fixture.observer.query(
      'SELECT count(*)::int AS n FROM doctors WHERE NOT on_call',
    )
    const errors = outcomes.flatMap((o) =>
      o.status === 'rejected' ? [o.reason as HoldfastError] : [],
    )
    return { left: rows[0].n, retries, errors }
  }

  test('a serialization failure runs the whole transaction again', async () => {
    const events = eventsOn<RetryInfo>('holdfast:tx.retry')
    const { left, retries, errors } = await leaveTogether({ baseMs: 1 })
    expect({ left, errors }).toEqual({ left: 1, errors: [] })
    expect(retries).toMatchObject([{ attempt: 1, reason: '40001' }])
    expect(events).toHaveLength(1)
  })

  test('without retry it is a typed error', async () => {
    const { left, errors } = await leaveTogether(false)
    expect(left).toBe(1)
    expect(errors).toMatchObject([{ code: 'TX_SERIALIZATION', retryable: true }])
  })

  test('a deadlock victim runs again', async () => {
    await fixture.observer.query(
      "TRUNCATE doctors; INSERT INTO doctors VALUES ('alice', true), ('bob', true)",
    )
    const bothHold = [deferred(), deferred()] as const
    const retries: RetryInfo[] = []
    const swap = (mine: number, first: string, second: string): Promise<void> =>
      fixture.hf.tx.run(
        async (tx, { attempt }) => {
          await tx.query('UPDATE doctors SET on_call = false WHERE name = $1', [first])
          if (attempt === 1) {
            bothHold[mine]?.resolve()
            await Promise.all(bothHold.map(({ promise }) => promise))
          }
          await tx.query('UPDATE doctors SET on_call = false WHERE name = $1', [second])
        },
        { onRetry: (info) => void retries.push(info) },
      )
    await Promise.all([swap(0, 'alice', 'bob'), swap(1, 'bob', 'alice')])
    // More than once where the victim is back before the other one has its row.
    expect(new Set(retries.map(({ reason }) => reason))).toEqual(new Set(['40P01']))
  })

  const failWith = (code: string) => async (tx: pg.PoolClient) => {
    await tx.query(`DO $$ BEGIN RAISE EXCEPTION 'made up' USING ERRCODE = '${code}'; END $$`)
  }

  test.each([
    ['40001', 'TX_SERIALIZATION'],
    ['40P01', 'TX_DEADLOCK'],
  ])('%s is given up after the bounded attempts', async (state, code) => {
    let runs = 0
    const run = fixture.hf.tx.run(
      async (tx) => {
        runs += 1
        await failWith(state)(tx)
      },
      { retry: { attempts: 3, baseMs: 1 } },
    )
    await expect(run).rejects.toMatchObject({ code, details: { attempts: 3 } })
    expect(runs).toBe(3)
  })

  test('the budget of time bounds it as well', async () => {
    const began = performance.now()
    const run = fixture.hf.tx.run(failWith('40001'), {
      retry: { attempts: 1_000_000, baseMs: 20, budgetMs: 150 },
    })
    await expect(run).rejects.toMatchObject({ code: 'TX_SERIALIZATION' })
    inTime(performance.now() - began, 1_000)
  })

  test.each(['23505', '55P03', '57014', '22012'])('%s is not retried', async (state) => {
    let runs = 0
    const run = fixture.hf.tx.run(async (tx) => {
      runs += 1
      await failWith(state)(tx)
    })
    await expect(run).rejects.toMatchObject({ code: state })
    expect(runs).toBe(1)
  })

  test('more may be asked for, Holdfast codes included', async () => {
    const key = lockKey('retry', 'busy')
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const retried: string[] = []
    const guarded = fixture.hf.guard(key, async () => 'in', {
      waitMs: 0,
      retry: { on: ['LOCK_BUSY'], baseMs: 5, capMs: 20, attempts: 1_000 },
      onRetry: ({ reason }) => {
        retried.push(reason)
        if (retried.length === 3) void holder.query('COMMIT')
      },
    })
    await expect(guarded).resolves.toBe('in')
    expect(retried.slice(0, 3)).toEqual(['LOCK_BUSY', 'LOCK_BUSY', 'LOCK_BUSY'])
  })
})

describe('deadline and signal', () => {
  test('a deadline cancels the running statement on the server and rolls back', async () => {
    const began = performance.now()
    const run = fixture.hf.tx.run(
      async (tx) => {
        await tx.query("INSERT INTO notes VALUES ('late')")
        await tx.query('/* deadline test */ SELECT pg_sleep(20)')
      },
      { deadlineMs: 200 },
    )
    await expect(run).rejects.toMatchObject({ code: 'TX_DEADLINE' })
    inTime(performance.now() - began, 2_000)
    expect(await notes('late')).toBe(0)
    const { rows } = await fixture.observer.query(
      "SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE '/* deadline test%'",
    )
    expect(rows).toHaveLength(0)
  })

  test('an abort ends a wait for a lock and rejects with its reason', async () => {
    const key = lockKey('abort', 1)
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, key)
    const abort = new AbortController()
    const waiting = fixture.hf.guard(key, async () => 'in', {
      signal: abort.signal,
      waitMs: 20_000,
    })
    const settled = waiting.then(String, (error: unknown) => error)
    await waitUntil('someone waits', async () => {
      const { rows } = await fixture.observer.query(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'",
      )
      return rows.length > 0 || undefined
    })
    const reason = new Error('the user closed the tab')
    abort.abort(reason)
    expect(await settled).toBe(reason)
  })

  test('an abort while the pool is exhausted does not wait for a connection', async () => {
    const pool = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
    const hf = createHoldfast(fromPg(pool))
    const only = await pool.connect()
    let ran = false
    const run = hf.tx.run(
      async () => {
        ran = true
      },
      { deadlineMs: 100 },
    )
    await expect(run).rejects.toMatchObject({ code: 'TX_DEADLINE' })
    only.release()
    await expect(hf.tx.run(async () => 'next')).resolves.toBe('next')
    expect(ran).toBe(false)
    await pool.end()
  })

  test('an abort before the start runs nothing', async () => {
    const reason = new Error('too late')
    await expect(
      fixture.hf.tx.run(async () => expect.unreachable(), { signal: AbortSignal.abort(reason) }),
    ).rejects.toBe(reason)
  })

  /** A transaction whose COMMIT waits at a gate, aborted there, and then let go or killed. */
  async function abortedInCommit(note: string, end: 'open' | 'kill'): Promise<unknown> {
    const abort = new AbortController()
    const gate = await fixture.observer.connect()
    await gate.query('SELECT pg_advisory_lock(991)')
    let pid = 0
    const run = fixture.hf.tx.run(
      async (tx) => {
        pid = await pidOf(tx)
        await tx.query('INSERT INTO slow_commit VALUES ($1)', [note])
        return 'committed'
      },
      { signal: abort.signal },
    )
    const settled = run.catch((error: unknown) => error)
    await waitUntil('the body ran', () => (pid === 0 ? undefined : true))
    await waitUntilBlocked(fixture.observer, pid)
    abort.abort(new Error('no'))
    if (end === 'kill') await fixture.observer.query('SELECT pg_terminate_backend($1)', [pid])
    await gate.query('SELECT pg_advisory_unlock(991)')
    gate.release()
    return settled
  }

  test('an abort after the body has finished does not undo a commit', async () => {
    expect(await abortedInCommit('let go', 'open')).toBe('committed')
    const { rows } = await fixture.observer.query("SELECT FROM slow_commit WHERE note = 'let go'")
    expect(rows).toHaveLength(1)
  })

  test('nor does it hide that the outcome of a commit is unknown', async () => {
    expect(await abortedInCommit('killed', 'kill')).toMatchObject({ code: 'COMMIT_UNKNOWN' })
  })

  test('deadlines that cannot work are refused', async () => {
    for (const deadlineMs of [0, -1, Number.NaN]) {
      await expect(fixture.hf.tx.run(async () => 1, { deadlineMs })).rejects.toMatchObject({
        code: 'OPTION_INVALID',
      })
    }
  })
})

test('errors are recognised by brand, and only ours', () => {
  expect(isHoldfastError(new Error('x'))).toBe(false)
  expect(isHoldfastError(null)).toBe(false)
})
