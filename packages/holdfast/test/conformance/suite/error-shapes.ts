import { deferred, waitUntilBlocked } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { isConnectionLoss, sqlStateOf } from '../../../src/core/sql-state.ts'
import { createTransactions } from '../../../src/tx/index.ts'
import { pidOf, rejection, type Setting, terminate } from './setting.ts'

/** Every SQLSTATE the rooms look at, provoked for real and found in what the client made of it. */
export function errorShapes<Tx>(at: Setting<Tx>): void {
  const touch = (id: string): string =>
    `UPDATE account SET balance = balance + 1 WHERE id = '${id}'`

  /** The error of the last statement, as it reached the body of the caller's own transaction. */
  async function errorIn(
    body: (run: (text: string) => Promise<unknown>, tx: Tx) => Promise<unknown>,
    isolation?: 'repeatable read' | 'serializable',
  ): Promise<Error> {
    let seen: Error | undefined
    const own = at.harness.own(async (tx) => {
      try {
        await body(async (text) => await at.harness.run(tx, text), tx)
      } catch (error) {
        seen = error as Error
        throw error
      }
    }, isolation)
    await rejection(own)
    return seen as Error
  }

  /** A deadlock with someone who is more patient than we are, so that we are the victim. */
  async function deadlock(run: (text: string) => Promise<unknown>, tx: Tx): Promise<void> {
    const [mine, theirs] = [await at.account(0), await at.account(0)]
    const rival = await at.rival()
    await rival.query("SET LOCAL deadlock_timeout = '60s'")
    await run("SET LOCAL deadlock_timeout = '10ms'")
    await run(touch(mine))
    await rival.query(touch(theirs))
    const { rows } = await rival.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const crossing = rival.query(touch(mine))
    expect(await waitUntilBlocked(at.observer, rows[0]?.pid as number)).toEqual([
      await pidOf(at.harness, tx),
    ])
    try {
      await run(touch(theirs))
    } finally {
      // Ours is rolled back only after this body, and only then the rival goes on.
      crossing.catch(() => undefined)
    }
  }

  async function lockedRow(): Promise<string> {
    const id = await at.account(0)
    await (await at.rival()).query(touch(id))
    return id
  }

  test('23505: unique_violation', async () => {
    const id = await at.account(0)
    const error = await errorIn(async (run) => await run(`INSERT INTO account VALUES ('${id}', 0)`))
    expect(sqlStateOf(error)).toBe('23505')
    expect(at.harness.sqlStateAt(error as never)).toBe('23505')
  })

  test('25P02: in_failed_sql_transaction', async () => {
    const error = await errorIn(async (run) => {
      await run('SELECT 1 / 0 AS infinity').catch(() => undefined)
      await run('SELECT 1 AS one')
    })
    expect(sqlStateOf(error)).toBe('25P02')
  })

  test('40001: serialization_failure at a statement', async () => {
    const id = await at.account(0)
    const error = await errorIn(async (run) => {
      await run(`SELECT balance FROM account WHERE id = '${id}'`)
      await at.observer.query(touch(id))
      await run(touch(id))
    }, 'repeatable read')
    expect(sqlStateOf(error)).toBe('40001')
  })

  describe('40001: serialization_failure at COMMIT', () => {
    /** Write skew: both read both accounts, each writes one. Whoever commits second fails. */
    async function skewed(native: Tx): Promise<void> {
      const [one, two] = [await at.account(0), await at.account(0)]
      const sum = `SELECT sum(balance)::text AS total FROM account WHERE id IN ('${one}', '${two}')`
      const rival = await at.observer.connect()
      try {
        await rival.query('BEGIN ISOLATION LEVEL SERIALIZABLE')
        await at.harness.run(native, sum)
        await rival.query(sum)
        await rival.query(touch(one))
        await at.harness.run(native, touch(two))
        await rival.query('COMMIT')
      } finally {
        rival.release()
      }
    }

    test('the driver rejects with it', async () => {
      let reached = false
      const error = await rejection(
        at.harness.driver.transaction(
          async ({ native }) => {
            await skewed(native)
            reached = true
          },
          { scopes: [], isolation: 'serializable' },
        ),
      )
      expect(reached).toBe(true)
      expect(sqlStateOf(error)).toBe('40001')
    })

    test('tx.run runs the whole again', async () => {
      const attempts: number[] = []
      await createTransactions(at.harness.driver).run(
        async (native, { attempt }) => {
          attempts.push(attempt)
          if (attempt === 1) await skewed(native)
        },
        { isolation: 'serializable' },
      )
      expect(attempts).toEqual([1, 2])
    })
  })

  test('40P01: deadlock_detected', async () => {
    const error = await errorIn(deadlock)
    expect(sqlStateOf(error)).toBe('40P01')
  })

  test('40P01: tx.run runs the whole again', async () => {
    const attempts: number[] = []
    await createTransactions(at.harness.driver).run(async (native, { attempt }) => {
      attempts.push(attempt)
      if (attempt === 1) await deadlock(async (text) => await at.harness.run(native, text), native)
    })
    expect(attempts).toEqual([1, 2])
  })

  test('55P03: lock_not_available, by lock_timeout', async () => {
    const id = await lockedRow()
    const error = await errorIn(async (run) => {
      await run("SET LOCAL lock_timeout = '20ms'")
      await run(touch(id))
    })
    expect(sqlStateOf(error)).toBe('55P03')
  })

  test('55P03: lock_not_available, by NOWAIT', async () => {
    const id = await lockedRow()
    const error = await errorIn(
      async (run) => await run(`SELECT id FROM account WHERE id = '${id}' FOR UPDATE NOWAIT`),
    )
    expect(sqlStateOf(error)).toBe('55P03')
  })

  test('57014: query_canceled, by statement_timeout', async () => {
    const error = await errorIn(async (run) => {
      await run("SET LOCAL statement_timeout = '20ms'")
      await run('SELECT pg_sleep(60)::text AS slept')
    })
    expect(sqlStateOf(error)).toBe('57014')
  })

  test('57P01: admin_shutdown under a running statement', async () => {
    const id = await lockedRow()
    const other = await at.another()
    const pid = deferred<number>()
    const seen = deferred<unknown>()
    const killed = other.driver.transaction(
      async ({ native }) => {
        pid.resolve(await pidOf(other, native))
        await other.run(native, touch(id)).catch((error: unknown) => {
          seen.resolve(error)
          throw error
        })
      },
      { scopes: [] },
    )
    const settled = rejection(killed)
    await waitUntilBlocked(at.observer, await pid.promise)
    await terminate(at.observer, await pid.promise)
    expect((await settled).code).toBe('CONNECTION_LOST')
    expect(sqlStateOf(await seen.promise)).toBe(other.facts.killedState)
    expect(isConnectionLoss(await seen.promise)).toBe(true)
  })
}
