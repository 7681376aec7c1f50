import { afterAll, afterEach, beforeAll } from 'vitest'
import { createHoldfast, migrate } from '../../../../src/mysql.ts'
import { type Offered, tables } from '../../../promises/bench.ts'
import { keepsPromises } from '../../../promises/keeps-promises.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle, InnodbClient } from '../support/innodb-clients.ts'

const names = {
  mysql2: 'mysql2',
  mariadb: 'mariadb',
  drizzle: 'Drizzle',
  kysely: 'Kysely',
  typeorm: 'TypeORM',
} as const

const weekUs = 7 * 86_400 * 1_000_000

eachInnodb((place) => {
  let pools: InnodbClient[] = []
  const open = (): InnodbClient => {
    const pool = place.pool()
    pools.push(pool)
    return pool
  }
  afterEach(async () => {
    for (const pool of pools) await pool[Symbol.asyncDispose]()
    pools = []
  })
  let reading: InnodbClient
  beforeAll(async () => {
    await using session = await place.session()
    await session.all(...tables('DATETIME(6)'))
    reading = place.pool(1)
    await migrate(reading.driver)
  })
  afterAll(async () => await reading[Symbol.asyncDispose]())
  keepsPromises<Handle>('innodb', names[place.client], () => ({
    async start() {
      return createHoldfast(open().driver) as unknown as Offered<Handle>
    },
    run: async (tx, text) => await reading.rows(tx, text),
    async own(body) {
      // Kysely knows the handles of its own pool only.
      const tx = await (pools[0] as InnodbClient).connect()
      await tx.beginTransaction()
      const result = await body(tx)
      await tx.commit()
      await tx.release()
      return result
    },
    async look(text) {
      await using session = await place.session()
      return await session.rows(text)
    },
    async sleepThrough(name) {
      await using session = await place.session()
      const last = Math.floor((Date.now() * 1_000) / weekUs) - 1
      await session.rows('UPDATE holdfast_schedule SET last_tick = ? WHERE name = ?', [
        last * weekUs,
        name,
      ])
    },
  }))
})
