/** Two ledgers in one database, over one pool: what one of them prepared must not answer the other. */
import pg from 'pg'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()

beforeAll(async () => {
  await migrate(fromPg(fixture.observer), { schema: 'second' })
})

test('each has its own balances', async () => {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
  onTestFinished(() => pool.end())
  const key = fresh()
  const [first, second] = ['holdfast', 'second'].map((schema) =>
    createHoldfast(fromPg(pool), { ledger: { schema } }).quota({
      name: 'calls',
      limit: 100,
      per: 'lifetime',
    }),
  )
  // Often enough that both have prepared their calls on the one connection.
  for (let round = 1; round <= 5; round += 1) {
    const spent = await first?.consume(key, 1, { operationId: fresh() })
    const other = await second?.consume(key, 10, { operationId: fresh() })
    expect([spent?.available, other?.available]).toEqual([100 - round, 100 - 10 * round])
  }
})
