/** Compiled, never run: locations are checked where they are declared, amounts have their type. */
import type pg from 'pg'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast } from '../../src/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

declare function proven<_Proof extends true>(): void

export async function onStock(pool: pg.Pool, tx: pg.PoolClient): Promise<void> {
  const hf = createHoldfast(fromPg(pool))
  const stock = hf.stock({ name: 'shop', locations: ['store', 'depot'], amounts: 'bigint' })
  const line = { sku: 'mug', quantity: 1, location: 'store' } as const
  const { lines } = await stock.issue(tx, [line], { externalId: 'o1' })
  proven<Same<(typeof lines)[number]['missing'], bigint>>()
  // @ts-expect-error no such location
  await stock.issue([{ ...line, location: 'stroe' }], { externalId: 'o1' })
  // @ts-expect-error an id is not optional
  await stock.issue([line], {})
  // @ts-expect-error an adjustment needs a reason
  await stock.adjust([line], { externalId: 'a1' })
  // @ts-expect-error the pool is no transaction
  await stock.issue(pool, [line], { externalId: 'o1' })
  // @ts-expect-error stock cannot be booked into debt
  hf.stock({ name: 'shop', overrun: 'book' })
  const anywhere = hf.stock({ name: 'shop' })
  const verdict = await anywhere.reserve([{ ...line, location: 'anywhere' }], {
    externalId: 'c1',
    ttl: '15 min',
  })
  proven<Same<typeof verdict.available, number>>()
}
