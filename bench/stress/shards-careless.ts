import { randomUUID } from 'node:crypto'
import { waitUntil } from '@holdfast/testkit'
import type { Pool } from 'pg'
import { bucketOf } from '../../packages/holdfast/src/core/bucket.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { createMoves } from '../../packages/holdfast/src/shards/index.ts'
import { type Cluster, type Name, otherThan, ownersOf } from './shards-cluster.ts'
import { effects, type AppLine } from './shards-model.ts'

/** Moves a bucket without one of the two things that keep operations from being lost. */
export async function moveCarelessly(
  cluster: Cluster,
  key: string,
  without: 'mark' | 'wait',
  write: (line: AppLine) => void,
): Promise<void> {
  const bucket = bucketOf(key)
  const [from] = (await ownersOf(cluster, bucket)) as [Name]
  const to = otherThan(from)
  const [source, target] = [cluster.pools[from], cluster.pools[to]]
  const id = await new Promise<string>((resolve, reject) => {
    const moves = createMoves(
      {
        [from]: { driver: fromPg(source), connection: cluster.urls[from] },
        [to]: { driver: fromPg(target), connection: cluster.urls[to] },
      },
      {
        onProgress: async (progress) => {
          if (progress.step !== 'copied') return
          resolve(progress.id)
          // It is left standing here for good.
          await new Promise<never>(() => {})
        },
      },
    )
    moves.move({ buckets: [bucket], to, tables: [effects] }).catch(reject)
  })
  // Of an application that has used its own connection before the mark, and ends after it.
  const client = await source.connect()
  const line = { kind: 'use', key, id: randomUUID() } as const
  write({ ...line, outcome: 'begun' })
  if (without === 'wait') {
    await client.query('BEGIN')
    const uses = createHoldfast(fromPg(source)).quota({
      name: 'uses',
      limit: 1_000_000_000,
      per: 'lifetime',
    })
    await uses.consume(client, key, 1, { operationId: line.id })
    await source.query('SELECT holdfast.mark_leaving($1)', [id])
  } else {
    await source.query(`UPDATE holdfast.shard_move SET step = 'leaving' WHERE id = $1`, [id])
  }
  await source.query('SELECT holdfast.write_end($1)', [id])
  await waitUntil('the last row arrives', async () => {
    const { rowCount } = await target.query('SELECT FROM holdfast.shard_end WHERE move = $1', [id])
    return rowCount === 1 || undefined
  })
  await takeAsItIs(target, id)
  if (without === 'wait') {
    await client.query('COMMIT')
    write({ ...line, outcome: 'ok' })
  } else {
    // Applications go on where they were until they are told otherwise.
    const before = await movements(cluster, from, bucket)
    await waitUntil('something is done at the source', async () =>
      (await movements(cluster, from, bucket)) > before ? true : undefined,
    )
  }
  client.release()
  await cluster.moves.resume(id)
}

/** What has come is enough, or counting would tell. Rows keep coming: both look at the same moment, or once more. */
async function takeAsItIs(target: Pool, id: string): Promise<void> {
  const client = await target.connect()
  try {
    await waitUntil('the target takes it', async () => {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      try {
        await client.query('SELECT holdfast.expect_rows($1, holdfast.count_move($1))', [id])
        await client.query(`SELECT holdfast.take_move($1, '{1}')`, [id])
        await client.query('COMMIT')
        return true
      } catch (error) {
        await client.query('ROLLBACK')
        if (!['HF009', '40001'].includes((error as { code?: string }).code ?? '')) throw error
        return undefined
      }
    })
  } finally {
    client.release()
  }
}

async function movements({ pools }: Cluster, name: Name, bucket: number): Promise<number> {
  const { rows } = await pools[name].query<{ count: number }>(
    'SELECT count(*)::int AS count FROM holdfast.movement WHERE bucket = $1',
    [bucket],
  )
  return rows[0]?.count ?? 0
}
