/** One process that moves buckets, or goes on with a move, and tells of every step before it goes on. */
import pg from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createMoves } from '../../packages/holdfast/src/shards/index.ts'
import { effects, type MoverNews, type MoverTask } from './shards-model.ts'

process.once('message', (task: MoverTask) => {
  void run(task).catch((error: unknown) => {
    tell({ kind: 'failed', why: (error as { code?: string }).code ?? String(error) })
  })
})
process.on('disconnect', () => process.exit(0))

async function run(task: MoverTask): Promise<void> {
  const primaries = Object.fromEntries(
    Object.entries(task.urls).map(([name, url]) => {
      const pool = new pg.Pool({ connectionString: url, max: 2 })
      pool.on('error', () => undefined)
      return [name, { driver: fromPg(pool), connection: url }]
    }),
  )
  const moves = createMoves(primaries, {
    pause: '8 s',
    onProgress: ({ id, step }) => tell({ kind: 'step', id, step }),
  })
  if (task.act === 'move') {
    const { buckets, to } = task
    const [outcome] = await moves.move({ buckets, to, tables: [effects] })
    tell({ kind: 'over', outcome })
  } else if (task.act === 'resume') {
    tell({ kind: 'over', outcome: await moves.resume(task.id) })
  } else {
    await moves.undo(task.id)
    tell({ kind: 'over', outcome: undefined })
  }
}

function tell(news: MoverNews): void {
  process.send?.(news)
}
