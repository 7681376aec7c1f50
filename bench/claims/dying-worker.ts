/** Takes one job of a queue and never ends it; see recovery.ts. */
import { Pool } from 'pg'
import { PgBoss } from 'pg-boss'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'

const [url = '', queue = ''] = process.argv.slice(2)
const { promise: never } = Promise.withResolvers<void>()
const taken = async (): Promise<void> => {
  process.send?.('taken')
  await never
}

if (queue === 'holdfast, work') {
  const work = createHoldfast(fromPg(new Pool({ connectionString: url }))).work({
    queue: 'bench',
    lease: '10 s',
  })
  await work.run({ handler: taken })
} else {
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false })
  await boss.start()
  await boss.work('bench', { pollingIntervalSeconds: 0.5 }, taken)
}
