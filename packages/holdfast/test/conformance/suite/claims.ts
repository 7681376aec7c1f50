import { describe, expect, test } from 'vitest'
import type { ClaimsOptions } from '../../../src/entries/claims.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { rejection, type Setting } from './setting.ts'

let tables = 0

/** Claims over a table of the user's and over ours, by the client's own handle. */
export function claims<Tx>(at: Setting<Tx>): void {
  const create = (): Holdfast<Tx> => createHoldfast(at.harness.driver)

  const table = async (rows: number): Promise<{ name: string; options: ClaimsOptions }> => {
    tables += 1
    const name = `Claims ${tables}`
    await at.observer.query(`
      CREATE TABLE "${name}" (
        tenant int NOT NULL, id uuid NOT NULL, "Status" varchar(10) NOT NULL DEFAULT 'pending',
        claim_token text, lease_until timestamptz, attempts smallint, run_at timestamptz NOT NULL DEFAULT now(),
        last_error text, at int NOT NULL, PRIMARY KEY (tenant, id));
      CREATE INDEX ON "${name}" (at) WHERE "Status" = 'pending';
      CREATE INDEX ON "${name}" (tenant, at) WHERE "Status" = 'pending';
      CREATE INDEX ON "${name}" (lease_until) WHERE "Status" = 'claimed';
      CREATE INDEX ON "${name}" (tenant) WHERE "Status" = 'claimed';
      INSERT INTO "${name}" (tenant, id, at) SELECT g % 2, gen_random_uuid(), g FROM generate_series(1, ${rows}) g`)
    const options: ClaimsOptions = {
      table: { schema: 'public', table: name },
      key: ['tenant', 'id'],
      columns: {
        status: 'Status',
        attempts: 'attempts',
        runAt: 'run_at',
        error: 'last_error',
      },
      orderBy: ['at'],
      select: ['at', 'tenant'],
    }
    return { name, options }
  }

  interface Seen {
    readonly at: number
    readonly tenant: number
  }

  const statuses = async (name: string): Promise<string> => {
    const { rows } = await at.observer.query<{ all: string }>(
      `SELECT string_agg("Status", ',' ORDER BY at) AS all FROM "${name}"`,
    )
    return rows[0]?.all ?? ''
  }

  test('every verb, fenced', async () => {
    const { name, options } = await table(4)
    const tasks = create().claims<Seen>(options)
    expect(await tasks.check()).toEqual([])
    const all = await tasks.claim(4)
    expect(all.map(({ row }) => row)).toEqual([
      { at: 1, tenant: 1 },
      { at: 2, tenant: 0 },
      { at: 3, tenant: 1 },
      { at: 4, tenant: 0 },
    ])
    const [a, b, c, d] = all
    if (!a || !b || !c || !d) throw new Error('four claims')
    await at.observer.query(`UPDATE "${name}" SET claim_token = gen_random_uuid() WHERE at = 4`)
    expect((await tasks.heartbeat(all)).lost).toEqual([d])
    expect(await tasks.complete([a, d])).toEqual({ kept: [a], lost: [d], dead: [] })
    expect((await tasks.fail(b, { error: new Error('why') })).kept).toEqual([b])
    expect((await tasks.release(c)).kept).toEqual([c])
    expect(await statuses(name)).toBe('done,pending,pending,claimed')
    await at.observer.query(
      `UPDATE "${name}" SET lease_until = now() - interval '1 s' WHERE at = 4`,
    )
    expect(await tasks.recover()).toEqual({ freed: 1, dead: 0 })
    expect(await statuses(name)).toBe('done,pending,pending,pending')
  })

  test('turns and limits', async () => {
    const { options } = await table(6)
    const tasks = create().claims<Seen>({ ...options, perKey: { column: 'tenant', limit: 1 } })
    expect(await tasks.check()).toEqual([])
    const both = await tasks.claim(6)
    expect(new Set(both.map(({ row }) => row.at))).toEqual(new Set([1, 2]))
    expect(await tasks.claim(6)).toEqual([])
    await tasks.complete(both)
    expect((await tasks.claim(1)).map(({ row }) => row.at)).toEqual([4])
    expect((await tasks.claim(1)).map(({ row }) => row.at)).toEqual([3])
  })

  describe("in the caller's transaction", () => {
    test('completing is part of it', async () => {
      const { name, options } = await table(1)
      const tasks = create().claims<Seen>(options)
      const [claim] = await tasks.claim()
      if (!claim) throw new Error('no claim')
      const account = await at.account(0)
      await at.harness.own(async (tx) => {
        await at.harness.run(tx, `UPDATE account SET balance = 5 WHERE id = '${account}'`)
        await tasks.complete(tx, claim)
        expect(await statuses(name)).toBe('claimed')
      })
      expect([await statuses(name), await at.balance(account)]).toEqual(['done', 5])
    })

    test('completing a lost claim takes everything back', async () => {
      const { name, options } = await table(1)
      const tasks = create().claims<Seen>(options)
      const [claim] = await tasks.claim()
      if (!claim) throw new Error('no claim')
      await at.observer.query(`UPDATE "${name}" SET claim_token = NULL, "Status" = 'pending'`)
      const account = await at.account(0)
      const error = await rejection(
        at.harness.own(async (tx) => {
          await at.harness.run(tx, `UPDATE account SET balance = 5 WHERE id = '${account}'`)
          await tasks.complete(tx, claim)
        }),
      )
      expect(error.code).toBe('CLAIM_LOST')
      expect([await statuses(name), await at.balance(account)]).toEqual(['pending', 0])
    })

    test('claiming is part of it; at REPEATABLE READ it is refused', async () => {
      const { name, options } = await table(2)
      const tasks = create().claims<Seen>(options)
      await at.harness.own(async (tx) => {
        expect((await tasks.claim(tx, 1)).map(({ row }) => row.at)).toEqual([1])
        expect(await statuses(name)).toBe('pending,pending')
      })
      expect(await statuses(name)).toBe('claimed,pending')
      const error = await rejection(
        at.harness.own(async (tx) => await tasks.claim(tx, 1), 'repeatable read'),
      )
      expect(error.code).toBe('CLAIM_STALE_SNAPSHOT')
    })

    test('take, work, finish, without any column of ours', async () => {
      const { name, options } = await table(2)
      const tasks = create().claims<Seen>({
        mode: 'transaction',
        table: options.table,
        key: options.key ?? 'id',
        columns: { status: 'Status' },
        orderBy: ['at'],
        select: ['at'],
      })
      await at.harness.own(async (tx) => {
        const taken = await tasks.take(tx, 1)
        expect(taken.map(({ row }) => row)).toEqual([{ at: 1 }])
        await tasks.finish(tx, taken)
      })
      expect(await statuses(name)).toBe('done,pending')
    })

    test('a handle that was never in one is refused', async () => {
      const { options } = await table(1)
      const tasks = create().claims<Seen>(options)
      for (const withHandle of Object.values(at.harness.lookAlikes)) {
        await withHandle(async (handle) => {
          const error = await rejection(tasks.claim(handle, 1))
          expect(error.code).toBe('CLAIM_OUTSIDE_TRANSACTION')
        })
      }
    })
  })

  test('work is added with what the transaction writes', async () => {
    await migrate(at.harness.driver)
    const work = create().work<{ order: string }>({ queue: fresh() })
    const mine = new Error('mine')
    const order = fresh()
    await rejection(
      at.harness.own(async (tx) => {
        await work.enqueue(tx, { payload: { order: 'no' } })
        throw mine
      }),
    )
    const added = await at.harness.own(
      async (tx) => await work.enqueue(tx, [{ payload: { order }, uniqueKey: order, scope: 's' }]),
    )
    expect(await work.enqueue({ payload: { order }, uniqueKey: order, scope: 's' })).toEqual({
      id: added[0]?.id,
      added: false,
    })
    const claimed = await work.claim(9)
    expect(claimed.map(({ row }) => row)).toEqual([
      { id: added[0]?.id, scope: 's', priority: 0, payload: { order } },
    ])
    expect((await work.complete(claimed)).lost).toEqual([])
  })

  test('a worker', async () => {
    const { name, options } = await table(12)
    const tasks = create().claims<Seen>(options)
    const account = await at.account(0)
    const worker = await tasks.run({
      concurrency: 2,
      transactionHandler: async (tx) => {
        await at.harness.run(tx, `UPDATE account SET balance = balance + 1 WHERE id = '${account}'`)
      },
    })
    await worker.drain()
    expect(new Set((await statuses(name)).split(','))).toEqual(new Set(['done']))
    expect(await at.balance(account)).toBe(12)
  })
}
