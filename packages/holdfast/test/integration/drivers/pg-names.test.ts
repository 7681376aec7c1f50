import {
  databaseOf,
  type PgBouncer,
  pgbouncerProgram,
  startPgBouncer,
  urlWithDatabase,
} from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { tracksNames } from '../../../src/drivers/pg/pg-names.ts'
import { fromPg, type PgOptions } from '../../../src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../../src/index.ts'
import { pgFixture } from '../../support/pg-fixture.ts'

/** Names of prepared statements through poolers that keep track of them, and through those that do not. */
const fixture = pgFixture()
const hasNewest = pgbouncerProgram('newest') !== undefined
if (!hasNewest)
  process.stderr.write(
    '!!! no newest PgBouncer here, so its tests do not run: npm run servers:engines\n',
  )

const kinds = [
  { name: 'of the system', version: undefined, settings: {}, tracks: false },
  ...(hasNewest
    ? ([
        { name: 'the newest', version: 'newest', settings: {}, tracks: true },
        {
          name: 'the newest, told not to',
          version: 'newest',
          settings: { max_prepared_statements: '0' },
          tracks: false,
        },
      ] as const)
    : []),
]

describe.each(kinds)('PgBouncer, $name', ({ version, settings, tracks }) => {
  let pooler: PgBouncer
  let url: string

  beforeAll(async () => {
    const server = new URL(fixture.database.directUrl)
    pooler = await startPgBouncer(
      { host: server.hostname, port: Number(server.port), user: server.username },
      { poolSize: 2, settings, ...(version === undefined ? {} : { version }) },
    )
    url = urlWithDatabase(pooler.url(), databaseOf(fixture.database.directUrl))
  })
  afterAll(async () => await pooler.stop())

  function poolOf(max: number): pg.Pool {
    const pool = new pg.Pool({ connectionString: url, max })
    onTestFinished(async () => await pool.end())
    return pool
  }

  /** On the servers behind it, by what they do. */
  async function preparedThere(): Promise<number> {
    const pool = poolOf(2)
    const clients = await Promise.all([pool.connect(), pool.connect()])
    // Both are in a transaction, so that each has a server of its own.
    await Promise.all(clients.map(async (client) => await client.query('BEGIN')))
    const counts = await Promise.all(
      clients.map(async (client) => {
        const { rows } = await client.query<{ count: number }>(
          `SELECT count(*)::int4 FROM pg_prepared_statements WHERE statement LIKE '%advisory_xact_lock%'`,
        )
        return rows[0]?.count ?? 0
      }),
    )
    for (const client of clients) {
      await client.query('ROLLBACK')
      client.release()
    }
    return Math.max(...counts)
  }

  /** Many clients on two servers, in turn on one and on the other. */
  async function guards(options: PgOptions): Promise<void> {
    const hf = createHoldfast(fromPg(poolOf(8), options))
    const one = async (n: number): Promise<number> =>
      await hf.guard(lockKey('names', n % 5), async () => n)
    const numbers = Array.from({ length: 200 }, (_, n) => n)
    expect(await Promise.all(numbers.map(one))).toEqual(numbers)
  }

  test(`keeps track of names: ${tracks}`, async () => {
    const client = await poolOf(1).connect()
    expect(await tracksNames(client as never)).toBe(tracks)
    client.release()
    expect(await preparedThere()).toBe(0)
  })

  test('nothing is prepared unless it is asked for', async () => {
    await guards({})
    expect(await preparedThere()).toBe(0)
  })

  test('and if it is, where that is safe', async () => {
    await guards({ prepare: 'tracked' })
    expect(await preparedThere()).toBe(tracks ? 1 : 0)
  })
})

test('what leads straight to the server does not keep track', async () => {
  const pool = new pg.Pool({ connectionString: fixture.database.directUrl, max: 1 })
  onTestFinished(async () => await pool.end())
  const client = await pool.connect()
  expect(await tracksNames(client as never)).toBe(false)
  const { rows } = await client.query('SELECT name FROM pg_prepared_statements')
  expect(rows).toEqual([])
  client.release()
})
