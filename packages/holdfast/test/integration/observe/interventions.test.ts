/** Ending somebody's statement or session: the one that was meant, and no other. */
import { createDatabase, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createObserver, type SessionSeen } from '../../../src/observe/index.ts'
import { createInterventions } from '../../../src/observe/intervene.ts'
import { pgFixture, pidOf } from '../../support/pg-fixture.ts'
import { newRole, quoted } from '../../support/schema-fixture.ts'

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

/** What an observer shows of a session, and an intervention has to repeat. */
async function seenNow(pid: number): Promise<SessionSeen> {
  const session = await createObserver(fromPg(fixture.pool)).session(pid)
  return {
    startedAt: session?.startedAt ?? '',
    transactionStartedAt: session?.transactionStartedAt ?? null,
  }
}

/** Sleeps for a minute, and is seen to. */
async function asleep(client: pg.Client, pid: number): Promise<{ ended: Promise<unknown> }> {
  const ended = client.query('SELECT pg_sleep(60)').catch((error: unknown) => error)
  await waitUntil(`session ${pid} sleeps`, async () => {
    const { rowCount } = await fixture.observer.query(
      `SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'`,
      [pid],
    )
    return rowCount === 1 || undefined
  })
  return { ended }
}

const anything: SessionSeen = { startedAt: '', transactionStartedAt: null }

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
    expect(await interventions[verb](pid, await seenNow(pid))).toBe(true)
    expect(await waiting).toBe(verb === 'cancel' ? '57014' : '57P01')
    if (verb === 'cancel') expect((await waiter.query('SELECT 1')).rowCount).toBe(1)
    await holder.query('ROLLBACK')
  })

  test('says whether there was something to end in a session that idles in its transaction', async () => {
    const interventions = createInterventions(fromPg(fixture.pool))
    const idle = await session()
    const pid = await pidOf(idle)
    await idle.query('BEGIN')
    expect(await interventions[verb](pid, await seenNow(pid))).toBe(verb === 'terminate')
    if (verb === 'cancel') expect((await idle.query('SELECT 1')).rowCount).toBe(1)
  })

  test('names the right that the role lacks', async () => {
    const asker = await newRole(fixture.observer, 'LOGIN')
    const theirs = await newRole(fixture.observer, 'LOGIN')
    const as = (role: string): string => {
      const url = new URL(fixture.database.directUrl)
      url.username = encodeURIComponent(role)
      return url.href
    }
    const pool = new pg.Pool({ connectionString: as(asker), max: 1 })
    onTestFinished(() => pool.end())
    const interventions = createInterventions(fromPg(pool))
    const victim = await session(as(theirs))
    const pid = await pidOf(victim)
    const running = await asleep(victim, pid)
    const end = async (): Promise<unknown> => await interventions[verb](pid, await seenNow(pid))
    const lacks = (right: string): object => ({
      code: 'OBSERVE_RIGHT_MISSING',
      details: { pid, right, role: asker },
      message: expect.stringContaining(`GRANT "${right}" TO ${quoted(asker)}`),
    })
    await expect(end()).rejects.toMatchObject(lacks('pg_read_all_stats'))
    await fixture.observer.query(`GRANT pg_read_all_stats TO ${quoted(asker)}`)
    await expect(end()).rejects.toMatchObject(lacks('pg_signal_backend'))
    await fixture.observer.query(`GRANT pg_signal_backend TO ${quoted(asker)}`)
    // The control, and what no GRANT gives.
    const root = await session()
    const rootPid = await pidOf(root)
    const sleeping = await asleep(root, rootPid)
    await expect(interventions[verb](rootPid, await seenNow(rootPid))).rejects.toMatchObject({
      code: 'OBSERVE_RIGHT_MISSING',
      details: { right: 'SUPERUSER' },
    })
    await fixture.observer.query('SELECT pg_terminate_backend($1)', [rootPid])
    expect(await end()).toBe(true)
    await Promise.all([running.ended, sleeping.ended])
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
      const seen = pid > 0 && pid < 2 ** 31 && pid % 1 === 0 ? await seenNow(pid) : anything
      await expect(interventions[verb](pid, seen)).rejects.toMatchObject({
        code: 'OBSERVE_NO_SUCH_SESSION',
      })
    }
    expect((await elsewhere.query('SELECT 1')).rowCount).toBe(1)
    expect((await excepted.query('SELECT 1')).rowCount).toBe(1)
    // Without the exception the same session is ended: it is the exception that protects it.
    if (verb === 'terminate') {
      const pid = await pidOf(excepted)
      await createInterventions(driver).terminate(pid, await seenNow(pid))
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
    const seen = await seenNow(pid)
    const wrong = { ...seen, startedAt: '2001-01-01T00:00:00.000000Z' }
    await expect(interventions[verb](pid, wrong)).rejects.toMatchObject({
      code: 'OBSERVE_NO_SUCH_SESSION',
    })
    expect(await interventions[verb](pid, seen)).toBe(verb === 'terminate')
  })

  test('R3: of a pooled session that has gone on to another transaction is refused', async () => {
    const interventions = createInterventions(fromPg(fixture.pool))
    // One session for everybody, as behind a pool.
    const pooled = await session()
    const pid = await pidOf(pooled)
    await pooled.query('BEGIN')
    const seen = await seenNow(pid)
    expect(seen.transactionStartedAt).toMatch(/^\d{4}-.*\.\d{6}Z$/)
    await pooled.query('COMMIT')
    const over = { code: 'OBSERVE_TRANSACTION_OVER' }
    await expect(interventions[verb](pid, seen)).rejects.toMatchObject(over)
    // Somebody else's work, in the session that the first one had.
    await pooled.query('BEGIN')
    await pooled.query('INSERT INTO t VALUES (1)')
    await expect(interventions[verb](pid, seen)).rejects.toMatchObject(over)
    expect((await pooled.query('COMMIT')).command).toBe('COMMIT')
  })

  test('R3: of a session that was idle when it was seen leaves alone what it began since', async () => {
    const interventions = createInterventions(fromPg(fixture.pool))
    const pooled = await session()
    const pid = await pidOf(pooled)
    const idle = await seenNow(pid)
    expect(idle.transactionStartedAt).toBeNull()
    await pooled.query('BEGIN')
    await expect(interventions[verb](pid, idle)).rejects.toMatchObject({
      code: 'OBSERVE_TRANSACTION_OVER',
    })
    await pooled.query('COMMIT')
    expect(await interventions[verb](pid, idle)).toBe(verb === 'terminate')
  })

  test('R3: without saying which transaction is meant is refused', async () => {
    const interventions = createInterventions(fromPg(fixture.pool))
    const client = await session()
    const pid = await pidOf(client)
    const { startedAt, transactionStartedAt } = await seenNow(pid)
    for (const seen of [undefined, {}, { startedAt }, { transactionStartedAt }]) {
      await expect(interventions[verb](pid, seen as never)).rejects.toMatchObject({
        code: 'OPTION_INVALID',
      })
    }
    expect((await client.query('SELECT 1')).rowCount).toBe(1)
  })
})

test('R3, control: with the session alone compared, the innocent transaction is ended', async () => {
  const pooled = await session()
  const pid = await pidOf(pooled)
  await pooled.query('BEGIN')
  const { startedAt } = await seenNow(pid)
  await pooled.query('COMMIT')
  await pooled.query('BEGIN')
  const { rows } = await fixture.observer.query(
    `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
     WHERE pid = $1 AND to_char(backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') = $2`,
    [pid, startedAt],
  )
  expect(rows).toEqual([{ ended: true }])
  await expect(pooled.query('COMMIT')).rejects.toThrow(/terminat|closed|queryable/)
})
