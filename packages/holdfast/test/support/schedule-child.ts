import pg from 'pg'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast } from '../../src/index.ts'
import type { ScheduleOptions } from '../../src/entries/schedule.ts'

/** An application in a process of its own that begins a tick and never ends it. */
interface Task {
  readonly url: string
  readonly name: string
  readonly guarantee: 'at-most-once' | 'at-least-once' | 'transactional'
}

process.once('message', (task: Task) => void run(task))
process.on('disconnect', () => process.exit(0))

async function run({ url, name, guarantee }: Task): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 3 })
  const work = async (client: Pick<pg.PoolClient, 'query'>, at: Date): Promise<void> => {
    await client.query('INSERT INTO effect VALUES ($1, $2, $3)', [at, name, 'child'])
    process.send?.('at work')
    const { promise: word, resolve } = Promise.withResolvers<void>()
    process.once('message', () => resolve())
    await word
  }
  const options = {
    name,
    every: '7 days',
    ...(guarantee === 'transactional' ? {} : { lease: '2 s' }),
    guarantee,
    handler:
      guarantee === 'transactional'
        ? async (tx: pg.PoolClient, { at }: { at: Date }) => await work(tx, at)
        : async ({ at }: { at: Date }) => await work(pool, at),
  } as ScheduleOptions<pg.PoolClient>
  const [outcome] = await createHoldfast(fromPg(pool)).schedule(options).fire()
  process.send?.(outcome?.outcome)
}
