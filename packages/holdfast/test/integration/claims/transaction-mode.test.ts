/** Claim, work and finish in one transaction of the caller's, on a table without any column for it. */
import { describe, expect, test } from 'vitest'
import type { TransactionClaims } from '../../../src/entries/claims.ts'
import type pg from 'pg'
import { callerTransaction, pgFixture } from '../../support/pg-fixture.ts'

const fixture = pgFixture(`
  CREATE TABLE invoice (
    id int PRIMARY KEY, sent_at timestamptz, created timestamptz NOT NULL DEFAULT clock_timestamp());
  CREATE INDEX ON invoice (created, id) WHERE sent_at IS NULL;
  CREATE TABLE effect (invoice int)`)

interface Invoice {
  readonly id: number
}

/** Done by a timestamp: what is pending has none. */
function invoices(deleteDone = false): TransactionClaims<pg.PoolClient, Invoice> {
  return fixture.hf.claims<Invoice>({
    mode: 'transaction',
    table: 'invoice',
    columns: { status: 'sent_at' },
    values: { pending: null, done: '2026-01-01T00:00:00Z' },
    orderBy: ['created', 'id'],
    deleteDone,
  })
}

async function fill(count: number): Promise<void> {
  await fixture.observer.query('TRUNCATE invoice, effect')
  await fixture.observer.query(`INSERT INTO invoice SELECT g FROM generate_series(1, ${count}) g`)
}

const idsOf = (taken: readonly { row: Invoice }[]): number[] => taken.map(({ row }) => row.id)

describe('taking', () => {
  test('two transactions get different rows; a rollback frees them at once', async () => {
    await fill(4)
    const [a, b] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    expect(idsOf(await invoices().take(a, 2))).toEqual([1, 2])
    expect(idsOf(await invoices().take(b, 2))).toEqual([3, 4])
    expect(await invoices().take(b, 2)).toHaveLength(2)
    await a.query('ROLLBACK')
    const c = await callerTransaction(fixture)
    expect(idsOf(await invoices().take(c, 9))).toEqual([1, 2])
  })

  test('a killed connection frees them at once', async () => {
    await fill(1)
    const tx = await callerTransaction(fixture)
    await invoices().take(tx)
    const { rows } = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    await fixture.observer.query('SELECT pg_terminate_backend($1, 5000)', [rows[0]?.pid])
    await fixture.hf.transaction(async (again) => {
      expect(idsOf(await invoices().take(again))).toEqual([1])
    })
  })

  test('finished rows are done when the transaction commits', async () => {
    await fill(3)
    await fixture.hf.transaction(async (tx) => {
      const taken = await invoices().take(tx, 2)
      await tx.query('INSERT INTO effect SELECT id FROM invoice WHERE id < 3')
      await invoices().finish(tx, taken)
    })
    await fixture.hf.transaction(async (tx) => {
      const taken = await invoices(true).take(tx, 9)
      expect(idsOf(taken)).toEqual([3])
      const [only] = taken
      if (only) await invoices(true).finish(tx, only)
    })
    const { rows } = await fixture.observer.query('SELECT id FROM invoice ORDER BY id')
    expect(rows).toEqual([{ id: 1 }, { id: 2 }])
  })

  test('a row that is not pending any more cannot be finished', async () => {
    await fill(1)
    const tx = await callerTransaction(fixture)
    const taken = await invoices().take(tx)
    await invoices().finish(tx, taken)
    await expect(invoices().finish(tx, taken)).rejects.toMatchObject({ code: 'CLAIM_LOST' })
  })

  test('outside a transaction and at REPEATABLE READ it is refused', async () => {
    await fill(1)
    const client = await fixture.pool.connect()
    await expect(invoices().take(client)).rejects.toMatchObject({
      code: 'CLAIM_OUTSIDE_TRANSACTION',
    })
    client.release()
    const tx = await callerTransaction(fixture, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    await expect(invoices().take(tx)).rejects.toMatchObject({ code: 'CLAIM_STALE_SNAPSHOT' })
  })

  test('eight workers at once: every effect once', { timeout: 60_000 }, async () => {
    await fill(200)
    const claims = invoices()
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (;;) {
          const done = await fixture.hf.transaction(async (tx) => {
            const taken = await claims.take(tx, 5)
            for (const { row } of taken) await tx.query('INSERT INTO effect VALUES ($1)', [row.id])
            await claims.finish(tx, taken)
            return taken.length
          })
          if (done === 0) return
        }
      }),
    )
    const { rows } = await fixture.observer.query<{ n: number; different: number }>(
      'SELECT count(*)::int AS n, count(DISTINCT invoice)::int AS different FROM effect',
    )
    expect(rows).toEqual([{ n: 200, different: 200 }])
  })
})
