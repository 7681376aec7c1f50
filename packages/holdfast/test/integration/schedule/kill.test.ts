import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { deferred, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import type { ScheduleOptions, TickOutcome } from '../../../src/entries/schedule.ts'
import { type BreakableWire, breakableWire } from '../../support/breakable-wire.ts'
import { pidOf } from '../../support/pg-fixture.ts'
import { freshName, scheduleFixture, sleepThrough, weekly } from './schedule-room.ts'

/** Processes that are killed or stopped at work, and connections that are lost under a tick. */
const fixture = scheduleFixture()
type Guarantee = 'at-most-once' | 'at-least-once' | 'transactional'

/** A process that has begun the tick and waits. */
async function childAtWork(name: string, guarantee: Guarantee): Promise<ChildProcess> {
  const child = fork(new URL('../../support/schedule-child.ts', import.meta.url))
  onTestFinished(() => void child.kill('SIGKILL'))
  child.send({ url: fixture.database.url, name, guarantee })
  await once(child, 'message')
  return child
}

function declare(hf: Holdfast<pg.PoolClient>, name: string, guarantee: Guarantee) {
  const insert = async (client: Pick<pg.PoolClient, 'query'>, at: Date): Promise<void> => {
    await client.query('INSERT INTO effect VALUES ($1, $2, $3)', [at, name, 'parent'])
  }
  return hf.schedule({
    name,
    ...weekly,
    guarantee,
    handler:
      guarantee === 'transactional'
        ? async (tx: pg.PoolClient, { at }: { at: Date }) => await insert(tx, at)
        : async ({ at }: { at: Date }) => await insert(fixture.pool as never, at),
  } as ScheduleOptions<pg.PoolClient>)
}

async function doers(name: string): Promise<string[]> {
  const { rows } = await fixture.observer.query<{ by: string }>(
    'SELECT by FROM effect WHERE what = $1 ORDER BY by',
    [name],
  )
  return rows.map(({ by }) => by)
}

/** Fires until something comes of it: until then the dead one's lease has not run out. */
async function untilFired(name: string, guarantee: Guarantee): Promise<TickOutcome> {
  const schedule = declare(fixture.hf, name, guarantee)
  return await waitUntil('the tick is taken up', async () => (await schedule.fire())[0], {
    everyMs: 100,
  })
}

describe('killed at work', () => {
  test.each([
    ['at-most-once', 'lost', ['child']],
    ['at-least-once', 'done', ['child', 'parent']],
    ['transactional', 'done', ['parent']],
  ] as const)('%s: %s', async (guarantee, outcome, left) => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const child = await childAtWork(name, guarantee)
    child.kill('SIGKILL')
    expect(await untilFired(name, guarantee)).toMatchObject({ outcome })
    expect(await doers(name)).toEqual(left)
    expect(await declare(fixture.hf, name, guarantee).fire()).toEqual([])
  })
})

test('stopped longer than its lease, and woken: it hears that the tick is no longer its own', async () => {
  const name = freshName()
  await sleepThrough(fixture.observer, name, 1)
  const child = await childAtWork(name, 'at-least-once')
  child.kill('SIGSTOP')
  expect(await untilFired(name, 'at-least-once')).toMatchObject({ outcome: 'done', attempt: 2 })
  child.kill('SIGCONT')
  const told = once(child, 'message')
  child.send('go on')
  expect(await told).toEqual(['lost', undefined])
  const { rows } = await fixture.observer.query(
    'SELECT state, attempt FROM holdfast.ticks WHERE schedule = $1',
    [name],
  )
  expect(rows).toEqual([{ state: 'done', attempt: 2 }])
})

/** A schedule whose connections go through a wire that the test can break. */
async function onWire(wire: BreakableWire): Promise<Holdfast<pg.PoolClient>> {
  const pool = new pg.Pool({ connectionString: wire.url, max: 2 })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  onTestFinished(async () => await pool.end())
  return createHoldfast(fromPg(pool))
}

async function untilDone(name: string): Promise<void> {
  await waitUntil('it has ended', async () => {
    const { rowCount } = await fixture.observer.query(
      "SELECT FROM holdfast.ticks WHERE schedule = $1 AND state = 'done'",
      [name],
    )
    return rowCount === 1 ? true : undefined
  })
}

/** COMMIT of whoever inserts 7 into `slow` waits until this transaction ends. */
async function heldCommit(): Promise<pg.PoolClient> {
  await fixture.observer.query(`
    CREATE TABLE IF NOT EXISTS slow (id int);
    CREATE OR REPLACE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_advisory_xact_lock_shared(NEW.id); RETURN NULL; END';
    DROP TRIGGER IF EXISTS wait ON slow;
    CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`)
  const rival = await fixture.observer.connect()
  await rival.query('BEGIN; SELECT pg_advisory_xact_lock(7)')
  return rival
}

describe('the answer to its end is lost with the connection', () => {
  test.each(['at-most-once', 'at-least-once'] as const)('%s: asked again', async (guarantee) => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    await using wire = await breakableWire(fixture.database.url)
    const schedule = (await onWire(wire)).schedule({
      name,
      ...weekly,
      guarantee,
      handler: async ({ at }) => {
        await fixture.pool.query('INSERT INTO effect VALUES ($1, $2, $3)', [at, name, 'parent'])
        wire.hold()
      },
    })
    const firing = schedule.fire()
    await untilDone(name)
    wire.cut()
    wire.release()
    expect(await firing).toMatchObject([{ outcome: 'done' }])
    expect(await declare(fixture.hf, name, guarantee).fire()).toEqual([])
    expect(await doers(name)).toEqual(['parent'])
  })

  test('transactional: nobody knows, but nothing is done twice', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const rival = await heldCommit()
    await using wire = await breakableWire(fixture.database.url)
    const backend = deferred<number>()
    const schedule = (await onWire(wire)).schedule({
      name,
      ...weekly,
      guarantee: 'transactional',
      handler: async (tx, { at }) => {
        await tx.query('INSERT INTO effect VALUES ($1, $2, $3)', [at, name, 'parent'])
        await tx.query('INSERT INTO slow VALUES (7)')
        backend.resolve(await pidOf(tx))
      },
    })
    const firing = schedule.fire()
    await waitUntilBlocked(fixture.observer, await backend.promise)
    wire.hold()
    await rival.query('COMMIT')
    rival.release()
    await untilDone(name)
    wire.cut()
    wire.release()
    expect(await firing).toMatchObject([{ outcome: 'unknown', error: { code: 'COMMIT_UNKNOWN' } }])
    expect(await declare(fixture.hf, name, 'transactional').fire()).toEqual([])
    expect(await doers(name)).toEqual(['parent'])
  })

  test('transactional: one whose commit was lost is not passed over by the next', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 2)
    const rival = await heldCommit()
    const backend = deferred<number>()
    const declared = (slow: boolean) =>
      fixture.hf.schedule({
        name,
        ...weekly,
        guarantee: 'transactional',
        missed: { all: 2 },
        overlap: 'wait',
        handler: async (tx, { at }) => {
          await tx.query('INSERT INTO effect VALUES ($1, $2, $3)', [at, name, at.toISOString()])
          if (slow) await tx.query('INSERT INTO slow VALUES (7)')
          backend.resolve(await pidOf(tx))
        },
      })
    const firing = declared(true).fire()
    const pid = await backend.promise
    await waitUntilBlocked(fixture.observer, pid)
    // Ended within COMMIT: the server rolls back, and the client cannot tell.
    await fixture.observer.query('SELECT pg_terminate_backend($1)', [pid])
    expect(await firing).toMatchObject([{ outcome: 'unknown' }])
    await rival.query('COMMIT')
    rival.release()
    expect(await doers(name)).toEqual([])
    const outcomes = await declared(false).fire()
    expect(outcomes).toMatchObject([{ outcome: 'done' }, { outcome: 'done' }])
    expect(await doers(name)).toEqual(outcomes.map(({ at }) => at?.toISOString()))
  })

  test('transactional: an attempt that failed is written down at once or not at all', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    // The end of the tick waits for the lock of this number.
    await fixture.observer.query(`
      CREATE FUNCTION wait_at_end() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock_shared(8); RETURN NEW; END';
      CREATE TRIGGER wait_at_end BEFORE UPDATE ON holdfast.tick FOR EACH ROW
        WHEN (NEW.schedule = '${name}' AND NEW.state = 1) EXECUTE FUNCTION wait_at_end()`)
    onTestFinished(async () => {
      await fixture.observer.query('DROP FUNCTION wait_at_end CASCADE')
    })
    const rival = await fixture.observer.connect()
    await rival.query('BEGIN; SELECT pg_advisory_xact_lock(8)')
    const schedule = fixture.hf.schedule({
      name,
      ...weekly,
      guarantee: 'transactional',
      handler: () => {
        throw new Error('not today')
      },
    })
    const firing = schedule.fire()
    await waitUntil('the end of the tick waits', async () => {
      const { rowCount } = await fixture.observer.query(
        `SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 8 AND NOT granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      )
      return rowCount === 1 ? true : undefined
    })
    // Killed here, it would leave nothing that others have to wait for.
    expect(await schedule.history()).toEqual([])
    await rival.query('COMMIT')
    rival.release()
    expect(await firing).toMatchObject([{ outcome: 'waiting', attempt: 1 }])
  })
})

test('a tick that was seen at a server which lost it is not passed over at the next one', async () => {
  const name = freshName()
  await sleepThrough(fixture.observer, name, 2)
  const driver = fromPg(fixture.pool)
  let transactions = 0
  const hf = createHoldfast({
    ...driver,
    // After the first tick a standby takes over that never got it.
    transaction: async (...args: Parameters<typeof driver.transaction>) => {
      transactions += 1
      if (transactions === 2) {
        await sleepThrough(fixture.observer, name, 2)
        await fixture.observer.query('DELETE FROM holdfast.tick WHERE schedule = $1', [name])
        await fixture.observer.query('DELETE FROM effect WHERE what = $1', [name])
      }
      return await driver.transaction(...args)
    },
  } as typeof driver)
  const schedule = hf.schedule({
    name,
    ...weekly,
    guarantee: 'transactional',
    missed: { all: 2 },
    overlap: 'wait',
    handler: async (tx, { at }) => {
      await tx.query('INSERT INTO effect VALUES ($1, $2, $3)', [at, name, at.toISOString()])
    },
  })
  const outcomes = await schedule.fire()
  expect(outcomes).toMatchObject([{ outcome: 'done' }, { outcome: 'done' }, { outcome: 'done' }])
  const ticks = new Set(outcomes.map(({ at }) => at?.toISOString()))
  expect(await doers(name)).toEqual([...ticks])
})
