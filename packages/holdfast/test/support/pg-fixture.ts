import { channel } from 'node:diagnostics_channel'
import pg from 'pg'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { channels } from '../../src/core/events.ts'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, type HoldfastOptions } from '../../src/index.ts'
import { type TestDatabase, testDatabase } from './database.ts'

/** One database per file, a pool for the code under test, and one that always looks directly. */
export interface PgFixture {
  database: TestDatabase
  pool: pg.Pool
  /** Direct, for observing; never part of what is tested. */
  observer: pg.Pool
  hf: Holdfast<pg.PoolClient>
  create(options?: HoldfastOptions): Holdfast<pg.PoolClient>
}

export function pgFixture(schema = '', contents?: Parameters<typeof testDatabase>[0]): PgFixture {
  const fixture = {} as PgFixture
  beforeAll(async () => {
    const database = await testDatabase(contents)
    const pool = new pg.Pool({ connectionString: database.url, max: 20, application_name: 'suite' })
    const observer = new pg.Pool({ connectionString: database.directUrl, max: 4 })
    // Backends are killed on purpose in some tests; an idle client's error must not end the run.
    pool.on('error', () => undefined)
    const create = (options?: HoldfastOptions): Holdfast<pg.PoolClient> =>
      createHoldfast(fromPg(pool), options)
    Object.assign(fixture, { database, pool, observer, create, hf: create() })
    if (schema !== '') await observer.query(schema)
  })
  afterAll(async () => {
    await fixture.pool.end()
    await fixture.observer.end()
  })
  return fixture
}

/** A client of the caller's own with an open transaction; rolled back when the test ends. */
export async function callerTransaction(
  fixture: PgFixture,
  begin = 'BEGIN',
): Promise<pg.PoolClient> {
  const client = await fixture.pool.connect()
  client.on('error', () => undefined)
  await client.query(begin)
  onTestFinished(async () => {
    await client.query('ROLLBACK').catch(() => undefined)
    client.release(true)
  })
  return client
}

export async function pidOf(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  return rows[0]?.pid as number
}

/** Collects what is published on a channel until the test ends. */
export function eventsOn<T>(name: string): T[] {
  const events: T[] = []
  const listen = (message: unknown): void => void events.push(message as T)
  channel(name).subscribe(listen)
  onTestFinished(() => {
    channel(name).unsubscribe(listen)
  })
  return events
}

/** Channels that somebody listens to. Not that of errors: a whole run of all tests listens to it. */
export function heardChannels(): string[] {
  return Object.values(channels)
    .filter((each) => each.hasSubscribers && each !== channels.error)
    .map(({ name }) => String(name))
}
