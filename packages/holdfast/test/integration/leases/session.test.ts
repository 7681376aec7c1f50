import { once } from 'node:events'
import { databaseOf, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { hasSessions, type Session, type SessionDriver } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../../src/drivers/postgres-js.ts'
import { everyClient } from '../../support/every-client.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { pgFixture } from '../../support/pg-fixture.ts'

/** The optional part of the driver seam: one connection that is ours alone. */
const fixture = pgFixture()

const drivers: Readonly<Record<string, (url: string) => SessionDriver<unknown>>> = {
  pg(url) {
    const pool = new pg.Pool({ connectionString: url, max: 2 })
    pool.on('error', () => undefined)
    onTestFinished(async () => await pool.end())
    return fromPg(pool) as SessionDriver<unknown>
  },
  'postgres.js'(url) {
    const sql = postgres(url, { max: 2, prepare: false })
    onTestFinished(async () => await sql.end({ timeout: 5 }))
    return fromPostgresJs(sql) as SessionDriver<unknown>
  },
}

const pidIn = async (session: Session): Promise<number> =>
  Number((await session.query({ text: 'SELECT pg_backend_pid() AS pid', values: [] }))[0]?.['pid'])
const sleep = { text: 'SELECT pg_sleep(60)::text AS slept', values: [] }

describe.each(Object.entries(drivers))('%s', (_, open) => {
  test('keeps one backend, which the client knew from the start', async () => {
    const driver = open(fixture.database.directUrl)
    expect(hasSessions(driver)).toBe(true)
    const session = await driver.session()
    const pid = await pidIn(session)
    expect(session.claimedPid).toBe(pid)
    // Others get other connections, however many there are.
    for (let ask = 0; ask < 5; ask += 1) {
      const [row] = await driver.alone.query({
        text: 'SELECT pg_backend_pid() AS pid',
        values: [],
      })
      expect(Number(row?.['pid'])).not.toBe(pid)
      expect(await pidIn(session)).toBe(pid)
    }
    await session.end()
    await session.end()
    await waitUntil('its backend is gone', async () => {
      const { rows } = await fixture.observer.query('SELECT FROM pg_stat_activity WHERE pid = $1', [
        pid,
      ])
      return rows.length === 0 || undefined
    })
    expect(session.lost.aborted).toBe(false)
    await expect(pidIn(session)).rejects.toMatchObject({ code: 'DRIVER_HANDLE_INVALID' })
    // The pool goes on without it.
    await driver.alone.query({ text: 'SELECT 1 AS one', values: [] })
  })

  test.each(['idle', 'in a statement'])('knows when its backend is killed: %s', async (state) => {
    const driver = open(fixture.database.directUrl)
    const session = await driver.session()
    const pid = await pidIn(session)
    const waiting =
      state === 'idle'
        ? undefined
        : session.query(sleep).then(
            () => 'slept',
            (error: unknown) => error,
          )
    const lost = once(session.lost, 'abort')
    if (waiting !== undefined) {
      await waitUntil('it sleeps', async () => {
        const { rows } = await fixture.observer.query(
          `SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active'`,
          [pid],
        )
        return rows.length > 0 || undefined
      })
    }
    await fixture.observer.query('SELECT pg_terminate_backend($1)', [pid])
    await lost
    if (waiting !== undefined) expect(await waiting).toBeInstanceOf(Error)
    expect(session.lost.reason).toMatchObject({ code: 'CONNECTION_LOST' })
    await expect(pidIn(session)).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
    await session.end()
    await driver.alone.query({ text: 'SELECT 1 AS one', values: [] })
  })

  test('is seen to be none behind a pooler', async () => {
    const database = databaseOf(fixture.database.directUrl)
    const url = new URL(inject('pgbouncerUrl'))
    url.pathname = `/${encodeURIComponent(database)}`
    const session = await open(url.href).session()
    expect(await pidIn(session)).not.toBe(session.claimedPid)
    await session.end()
  })

  test('hears notifications of its channel, until it is told to stop', async () => {
    const channel = `"it's" ${fresh()}`
    const heard: string[] = []
    const listening = await open(fixture.database.directUrl).listen(channel, (payload) => {
      heard.push(payload)
    })
    const notify = async (payload: string): Promise<void> => {
      await fixture.observer.query('SELECT pg_notify($1, $2)', [channel, payload])
    }
    await notify('one')
    await waitUntil('it was heard', () => heard.length > 0 || undefined)
    await listening.end()
    await notify('two')
    expect(heard).toEqual(['one'])
    expect(listening.lost.aborted).toBe(false)
  })
})

test('only clients that can keep a connection offer it', async () => {
  const offered: string[] = []
  for (const [name, open] of Object.entries(everyClient)) {
    const client = await open(fixture.database.directUrl)
    if (hasSessions(client.driver)) offered.push(name)
    await client.end()
  }
  expect(offered).toEqual(['pg', 'postgres.js', 'postgres.js in camel case'])
})
