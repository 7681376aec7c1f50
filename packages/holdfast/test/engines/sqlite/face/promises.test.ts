import { describe } from 'vitest'
import type { SqliteDriver } from '../../../../src/engines/sqlite/driver.ts'
import { createHoldfast, migrate } from '../../../../src/sqlite.ts'
import type { Row } from '../../../../src/core/driver.ts'
import { type Bench, type Offered, tables } from '../../../promises/bench.ts'
import { keepsPromises } from '../../../promises/keeps-promises.ts'
import { eachSqlite, type SqlitePlace } from '../support/each-sqlite.ts'
import { openDatabase, ormClients } from '../support/orm-clients.ts'
import type { Handle } from '../support/sqlite-clients.ts'

const names = { kysely: 'Kysely', 'drizzle-orm': 'Drizzle' } as const

const weekUs = 7 * 86_400 * 1_000_000
const all = await ormClients()

/** The file has one lock: two keys exclude each other. `transactions.test.ts` and `locks.test.ts` have the controls. */
const oneLock = ['guard', 'tryGuard', 'locks.acquire']

type Common<Tx> = Pick<Bench<Tx>, 'start' | 'look' | 'sleepThrough'>

function common<Tx>(place: SqlitePlace, driver: () => SqliteDriver<Tx>): Common<Tx> {
  return {
    async start() {
      const own = driver()
      await migrate(own)
      return createHoldfast(own) as unknown as Offered<Tx>
    },
    async look(text) {
      const handle = place.open()
      // In a control this is sent while somebody else writes.
      handle.exec('PRAGMA busy_timeout = 0')
      return rowsOf(handle, text)
    },
    async sleepThrough(name) {
      const last = Math.floor((Date.now() * 1_000) / weekUs) - 1
      place
        .open()
        .prepare('UPDATE holdfast_schedule SET last_tick = ? WHERE name = ?')
        .run(last * weekUs, name)
    },
  }
}

function rowsOf(handle: Handle, text: string): readonly Row[] {
  const statement = handle.prepare(text)
  if (/^select/i.test(text)) return statement.all() as readonly Row[]
  statement.run()
  return []
}

eachSqlite(tables('TEXT'), (place) => {
  const withClient = common(place, () => place.driver())
  keepsPromises<Handle>(
    'sqlite',
    place.client,
    () => ({
      ...withClient,
      run: async (tx, text) => rowsOf(tx, text),
      async own(body) {
        const tx = place.open()
        tx.exec('BEGIN')
        const result = await body(tx)
        tx.exec('COMMIT')
        return result
      },
    }),
    oneLock,
  )

  const here = all.filter(({ client }) => client === place.client)
  describe.each(here.map((orm) => [orm.name, orm] as const))('%s', (_, orm) => {
    const open = (): ReturnType<typeof openDatabase> => openDatabase(place.client, place.file())
    const withOrm = common(place, () => {
      const driver = orm.driver(open)
      place.closing(driver)
      return driver
    })
    keepsPromises<object>(
      'sqlite',
      `${names[orm.name as keyof typeof names]} on ${place.client}`,
      () => ({
        ...withOrm,
        run: async (tx, text) => (await orm.send(tx, text)) as readonly Row[],
        own: async (body) => {
          const database = open()
          place.closing(database as never)
          const handle = orm.over(database)
          await orm.send(handle, 'BEGIN')
          return await body(handle)
        },
      }),
      oneLock,
    )
  })
})
