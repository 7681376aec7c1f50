import 'reflect-metadata'
import { DataSource, EntitySchema, IsNull } from 'typeorm'
import { cap, event, incomingBytes, limit, lockUser, type OpenClient } from './article-code.ts'

const id = { type: 'int', primary: true } as const
const generatedId = { ...id, generated: 'increment' } as const

const Usage = new EntitySchema<{ userId: string; used: number }>({
  name: 'usage',
  columns: { userId: { name: 'user_id', type: 'text', primary: true }, used: { type: 'int' } },
})
const UserImage = new EntitySchema<{ id: number; userId: string; byteSize: number }>({
  name: 'user_image',
  columns: {
    id: generatedId,
    userId: { name: 'user_id', type: 'text' },
    byteSize: { name: 'byte_size', type: 'int' },
  },
})
const Variant = new EntitySchema<{ id: number; stock: number }>({
  name: 'variant',
  columns: { id, stock: { type: 'int' } },
})
const StockMovement = new EntitySchema<{ id: number; variantId: number; change: number }>({
  name: 'stock_movement',
  columns: {
    id: generatedId,
    variantId: { name: 'variant_id', type: 'int' },
    change: { type: 'int' },
  },
})
const externalId = { name: 'external_id', type: 'text' } as const
const Webhook = new EntitySchema<{ id: number; externalId: string }>({
  name: 'webhook',
  columns: { id: generatedId, externalId },
})
const UniqueWebhook = new EntitySchema<{ id: number; externalId: string }>({
  name: 'unique_webhook',
  columns: { id: generatedId, externalId: { ...externalId, unique: true } },
})
const Job = new EntitySchema<{ id: number; worker: string | null }>({
  name: 'job',
  columns: { id, worker: { type: 'text', nullable: true } },
})

export async function openTypeOrm(url: string): Promise<OpenClient> {
  const source = new DataSource({
    type: 'postgres',
    url,
    entities: [Usage, UserImage, Variant, StockMovement, Webhook, UniqueWebhook, Job],
  })
  await source.initialize()
  return {
    run: {
      quota: (version) =>
        source.transaction(async (tx) => {
          if (version === 'fixed') await tx.query(lockUser)
          const { used } = await tx.findOneByOrFail(Usage, { userId: 'ann' })
          if (used + 1 > limit) return 'refused'
          await tx.increment(Usage, { userId: 'ann' }, 'used', 1)
          return 'accepted'
        }),
      upload: (version) =>
        source.transaction(async (tx) => {
          if (version === 'fixed') await tx.query(lockUser)
          const used = await tx.sum(UserImage, 'byteSize', { userId: 'ann' })
          if (Number(used ?? 0) + incomingBytes > cap) return 'refused'
          await tx.insert(UserImage, { userId: 'ann', byteSize: incomingBytes })
          return 'accepted'
        }),
      stock: (version) =>
        source.transaction(async (tx) => {
          const { stock } = await tx.findOneOrFail(Variant, {
            where: { id: 1 },
            ...(version === 'fixed' && { lock: { mode: 'pessimistic_write' } }),
          })
          if (stock < 1) return 'sold out'
          await tx.update(Variant, { id: 1 }, { stock: stock - 1 })
          await tx.insert(StockMovement, { variantId: 1, change: -1 })
          return 'sold'
        }),
      webhook: (version) =>
        source.transaction(async (tx) => {
          if (version === 'fixed') {
            const { raw } = await tx
              .createQueryBuilder()
              .insert()
              .into(UniqueWebhook)
              .values({ externalId: event })
              .orIgnore()
              .returning('external_id')
              .execute()
            return (raw as unknown[]).length === 1 ? 'handled' : 'seen before'
          }
          if (await tx.existsBy(Webhook, { externalId: event })) return 'seen before'
          await tx.insert(Webhook, { externalId: event })
          return 'handled'
        }),
      job: (version, who) =>
        source.transaction(async (tx) => {
          const [job] = await tx.find(Job, {
            where: { worker: IsNull() },
            order: { id: 'ASC' },
            take: 1,
            ...(version === 'fixed' && {
              lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' },
            }),
          })
          if (job === undefined) return 'nothing to do'
          await tx.update(Job, { id: job.id }, { worker: who })
          return `job ${job.id}`
        }),
    },
    [Symbol.asyncDispose]: () => source.destroy(),
  }
}
