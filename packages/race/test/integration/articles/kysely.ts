import { type Generated, Kysely, PostgresDialect, sql } from 'kysely'
import type { Pool } from 'pg'
import { cap, event, incomingBytes, limit, lockUser, type OpenClient } from './article-code.ts'

interface Tables {
  usage: { user_id: string; used: number }
  user_image: { id: Generated<number>; user_id: string; byte_size: number }
  variant: { id: number; stock: number }
  stock_movement: { id: Generated<number>; variant_id: number; change: number }
  webhook: { id: Generated<number>; external_id: string }
  unique_webhook: { id: Generated<number>; external_id: string }
  job: { id: number; worker: string | null }
}

export function openKysely(pool: Pool): OpenClient {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  return {
    run: {
      quota: (version) =>
        db.transaction().execute(async (tx) => {
          if (version === 'fixed') await sql.raw(lockUser).execute(tx)
          const { used } = await tx
            .selectFrom('usage')
            .select('used')
            .where('user_id', '=', 'ann')
            .executeTakeFirstOrThrow()
          if (used + 1 > limit) return 'refused'
          await tx
            .updateTable('usage')
            .set((row) => ({ used: row('used', '+', 1) }))
            .where('user_id', '=', 'ann')
            .execute()
          return 'accepted'
        }),
      upload: (version) =>
        db.transaction().execute(async (tx) => {
          if (version === 'fixed') await sql.raw(lockUser).execute(tx)
          const { used } = await tx
            .selectFrom('user_image')
            .select((row) => row.fn.sum<string | null>('byte_size').as('used'))
            .where('user_id', '=', 'ann')
            .executeTakeFirstOrThrow()
          if (Number(used ?? 0) + incomingBytes > cap) return 'refused'
          await tx
            .insertInto('user_image')
            .values({ user_id: 'ann', byte_size: incomingBytes })
            .execute()
          return 'accepted'
        }),
      stock: (version) =>
        db.transaction().execute(async (tx) => {
          const { stock } = await tx
            .selectFrom('variant')
            .select('stock')
            .where('id', '=', 1)
            .$if(version === 'fixed', (query) => query.forUpdate())
            .executeTakeFirstOrThrow()
          if (stock < 1) return 'sold out'
          await tx
            .updateTable('variant')
            .set({ stock: stock - 1 })
            .where('id', '=', 1)
            .execute()
          await tx.insertInto('stock_movement').values({ variant_id: 1, change: -1 }).execute()
          return 'sold'
        }),
      webhook: (version) =>
        db.transaction().execute(async (tx) => {
          if (version === 'fixed') {
            const { numInsertedOrUpdatedRows } = await tx
              .insertInto('unique_webhook')
              .values({ external_id: event })
              .onConflict((conflict) => conflict.doNothing())
              .executeTakeFirstOrThrow()
            return numInsertedOrUpdatedRows === 1n ? 'handled' : 'seen before'
          }
          const seen = await tx
            .selectFrom('webhook')
            .select('id')
            .where('external_id', '=', event)
            .executeTakeFirst()
          if (seen !== undefined) return 'seen before'
          await tx.insertInto('webhook').values({ external_id: event }).execute()
          return 'handled'
        }),
      job: (version, who) =>
        db.transaction().execute(async (tx) => {
          const job = await tx
            .selectFrom('job')
            .select('id')
            .where('worker', 'is', null)
            .orderBy('id')
            .limit(1)
            .$if(version === 'fixed', (query) => query.forUpdate().skipLocked())
            .executeTakeFirst()
          if (job === undefined) return 'nothing to do'
          await tx.updateTable('job').set({ worker: who }).where('id', '=', job.id).execute()
          return `job ${job.id}`
        }),
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
