/** Ending somebody's statement or session: the one that was meant, and no other. */
import { createDatabase, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createInterventions } from '../../../src/observe/intervene.ts'
import { pgFixture, pidOf } from '../../support/pg-fixture.ts'

const fixture = pgFixture('CREATE TABLE t (id int)')

async function session(
  url = fixture.database.directUrl,
  application = 'theirs',
): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: application })
  client.on('error', () => undefined)
  await client.connect()
  onTestFinished(async () => await client.end().catch(() => undefined))
  return client
}

describe.each(['cancel', 'terminate'] as const)('%s', (verb) => {
  test('ends what is running, and frees who waits', async () => {
    const interventions = createInterventions(fromPg(fixture.pool))
    const holder = await session()
    await holder.query('BEGIN; LOCK TABLE t')
    const waiter = await session()
    const pid = await pidOf(waiter)
    const waiting = waiter.query('SELECT FROM t').then(
      () => 'done',
      (error: { readonly code?: string }) => error.code,
    )
    await waitUntilBlocked(fixture.observer, pid)
    expect(await interventions[verb](pid)).toBe(true)
    expect(await waiting).toBe(verb === 'cancel' ? '57014' : '57P01')
    if (verb === 'cancel') expect((await waiter.query('SELECT 1')).rowCount).toBe(1)
    await holder.query('ROLLBACK')
  })

  test('leaves alone what is no client of this database, ourselves, and whoever is excepted', async () => {
    const driver = fromPg(fixture.pool)
    const interventions = createInterventions(driver, { exceptApplication: 'console' })
    const elsewhere = await session(await createDatabase(inject('postgresUrl')))
    const excepted = await session(fixture.database.directUrl, 'console')
    const { rows } = await fixture.observer.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'`,
    )
    const pids = [
      await pidOf(elsewhere),
      await pidOf(excepted),
      rows[0]?.pid as number,
      2 ** 31 - 1,
      0,
      -1,
      1.5,
      2 ** 31,
    ]
    for (const pid of pids) {
      await expect(interventions[verb](pid)).rejects.toMatchObject({
        code: 'OBSERVE_NO_SUCH_SESSION',
      })
    }
    expect((await elsewhere.query('SELECT 1')).rowCount).toBe(1)
    expect((await excepted.query('SELECT 1')).rowCount).toBe(1)
    // Without the exception the same session is ended: it is the exception that protects it.
    if (verb === 'terminate') {
      await createInterventions(driver).terminate(await pidOf(excepted))
      await waitUntil('it is gone', async () => {
        const gone = await excepted.query('SELECT 1').then(
          () => false,
          () => true,
        )
        return gone || undefined
      })
    }
  })

  test('of a session that began at another time is refused', async () => {
    const interventions = createInterventions(fromPg(fixture.pool))
    const client = await session()
    const pid = await pidOf(client)
    const startedAt = '2001-01-01T00:00:00.000000Z'
    await expect(interventions[verb](pid, { startedAt })).rejects.toMatchObject({
      code: 'OBSERVE_NO_SUCH_SESSION',
    })
    const { rows } = await fixture.observer.query<{ began: string }>(
      `SELECT to_char(backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS began
       FROM pg_stat_activity WHERE pid = $1`,
      [pid],
    )
    expect(await interventions[verb](pid, { startedAt: rows[0]?.began as string })).toBe(true)
  })
})
