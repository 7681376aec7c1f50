/** Who follows gets every movement once: whatever commits late, fails, is killed or reads at the same time. */
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { EventMap } from '../../../src/core/events/event-map.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { type FollowedMovement, fellBelow, reachedShares } from '../../../src/ledger/index.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { asSuperuser, emptyLedger, growOlder } from '../../support/ledger-past.ts'
import { callerTransaction, eventsOn, pidOf } from '../../support/pg-fixture.ts'
import { weakened } from '../../support/weakened-files.ts'

const fixture = ledgerFixture('CREATE TABLE read (follower text, id text)')
const operation = (): { operationId: string } => ({ operationId: fresh() })

type Seen = FollowedMovement<number>

/** Reads all, and gives what came. */
async function allFor(name: string, options: object = {}): Promise<Seen[]> {
  const seen: Seen[] = []
  await fixture.hf.ledger.follow({ name, ...options }, async (_, movements) => {
    seen.push(...movements)
  })
  return seen
}

async function stored(schema = 'holdfast', book?: string): Promise<string[]> {
  const { rows } = await fixture.observer.query<{ id: string }>(
    `SELECT m.account || '-' || m.seq || '-' || ${schema}.micros(m.at) AS id
     FROM ${schema}.movement m JOIN ${schema}.account a ON a.bucket = m.bucket AND a.id = m.account
     WHERE a.book = $1 OR $1 IS NULL`,
    [book ?? null],
  )
  return rows.map(({ id }) => id).toSorted()
}

async function written(follower: string): Promise<string[]> {
  const { rows } = await fixture.observer.query<{ id: string }>(
    'SELECT id FROM read WHERE follower = $1',
    [follower],
  )
  return rows.map(({ id }) => id).toSorted()
}

describe('a follower', () => {
  test('gets every movement of a book once, in the order of its account, with what it found', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const name = fresh()
    await quota.consume('a', 3, { ...operation(), note: { reason: 'first' } })
    const held = await quota.hold('a', 2, { ...operation(), ttl: '1 h' })
    await quota.consume('b', 1, operation())
    const first = await allFor(name, { book: quota.name, batch: 2 })
    expect(first.map(({ id }) => id).toSorted()).toEqual(await stored('holdfast', quota.name))
    const ofA = first.filter(({ key }) => key === 'a')
    expect(ofA).toMatchObject([
      {
        kind: 'debit',
        debit: 3,
        note: { reason: 'first' },
        before: { available: 10, sequence: 0 },
      },
      { kind: 'hold', hold: 2, before: { available: 7, sequence: 1 }, available: 5, scope: 'a' },
    ])
    expect(await allFor(name, { book: quota.name })).toEqual([])
    await quota.settle(held.ok ? (held.holdId as string) : '', 1)
    expect(await allFor(name, { book: quota.name })).toMatchObject([
      { kind: 'settle', debit: 1, hold: -2, before: { held: 2, available: 5 }, available: 6 },
    ])
    expect(await fixture.hf.ledger.followers()).toContainEqual({
      name,
      book: quota.name,
      since: expect.any(Date),
      readUpTo: expect.any(Date),
    })
  })

  test('may begin now, follows its own book only, and is forgotten on request', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const other = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const [name, book] = [fresh(), quota.name]
    await quota.consume('a', 1, operation())
    expect(await allFor(name, { book, from: 'now' })).toEqual([])
    await quota.consume('a', 1, operation())
    await quota.consume('b', 1, operation())
    await other.consume('a', 1, operation())
    const seen = await allFor(name, { book, from: 'now' })
    expect(new Map(seen.map(({ key, sequence }) => [key, sequence]))).toEqual(
      new Map([
        ['a', 2],
        ['b', 1],
      ]),
    )
    expect(seen).toHaveLength(2)
    await expect(allFor(name, { book: other.name })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    await expect(allFor(name)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await fixture.hf.ledger.unfollow(name)).toBe(true)
    expect(await fixture.hf.ledger.unfollow(name)).toBe(false)
    expect(await allFor(name, { book })).toHaveLength(3)
  })

  test('gets what commits after what is newer', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const [name, book] = [fresh(), quota.name]
    const slow = await callerTransaction(fixture)
    await quota.consume(slow, 'slow', 1, operation())
    await quota.consume('fast', 1, operation())
    expect(await allFor(name, { book })).toMatchObject([{ key: 'fast' }])
    await quota.consume('fast', 1, operation())
    expect(await allFor(name, { book })).toMatchObject([{ key: 'fast', sequence: 2 }])
    await slow.query('COMMIT')
    expect(await allFor(name, { book })).toMatchObject([{ key: 'slow' }])
  })

  test('whose handler fails gets the same again; what it wrote is gone', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const [name, book] = [fresh(), quota.name]
    for (const key of ['a', 'b', 'c']) await quota.consume(key, 1, operation())
    const write = async (tx: pg.PoolClient, movements: readonly Seen[]): Promise<void> => {
      for (const { id } of movements) await tx.query('INSERT INTO read VALUES ($1, $2)', [name, id])
    }
    let calls = 0
    const failing = fixture.hf.ledger.follow({ name, book, batch: 1 }, async (tx, movements) => {
      await write(tx, movements)
      calls += 1
      if (calls === 2) throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(await written(name)).toHaveLength(1)
    expect(await fixture.hf.ledger.follow({ name, book, batch: 1 }, write)).toEqual({
      movements: 2,
      busy: false,
    })
    expect(await written(name)).toEqual(await stored('holdfast', book))
  })

  test('reads alone for its name: another one leaves it to that', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const [name, book] = [fresh(), quota.name]
    await quota.consume('a', 1, operation())
    const reached = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const first = fixture.hf.ledger.follow({ name, book }, async () => {
      reached.resolve()
      await go.promise
    })
    await reached.promise
    expect(await fixture.hf.ledger.follow({ name, book }, async () => {})).toEqual({
      movements: 0,
      busy: true,
    })
    go.resolve()
    expect(await first).toEqual({ movements: 1, busy: false })
  })

  test('that is forgotten while it reads leaves no place behind, and is told', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const other = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const [name, book] = [fresh(), quota.name]
    for (const key of ['a', 'b']) await quota.consume(key, 1, operation())
    await other.consume('c', 1, operation())
    const reached = Promise.withResolvers<number>()
    const go = Promise.withResolvers<void>()
    const reading = fixture.hf.ledger.follow({ name, book, batch: 1 }, async (tx) => {
      reached.resolve(await pidOf(tx))
      await go.promise
    })
    const told = reading.catch((error: unknown) => error)
    const pid = await reached.promise
    const forgetting = fixture.hf.ledger.unfollow(name)
    await waitUntil('it waits', async () => {
      const { rows } = await fixture.observer.query(
        'SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))',
        [pid],
      )
      return rows.length > 0 || undefined
    })
    go.resolve()
    expect(await forgetting).toBe(true)
    expect(await told).toMatchObject({ code: 'OPTION_INVALID' })
    expect((await allFor(name, { book })).map(({ key }) => key).toSorted()).toEqual(['a', 'b'])
  })

  test('that runs under a name that now follows another book gets nothing of it', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const other = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const name = fresh()
    const events = eventsOn<EventMap['ledger.followed']>('holdfast:ledger.followed')
    const seen: Seen[] = []
    const started = { name, book: quota.name, every: 5 }
    const follower = fixture.hf.ledger.startFollower(started, async (_, movements) => {
      seen.push(...movements)
    })
    await quota.consume('a', 1, operation())
    await waitUntil('it has read', () => seen.length > 0 || undefined)
    await fixture.hf.ledger.unfollow(name)
    await allFor(name, { book: other.name })
    await other.consume('b', 1, operation())
    await quota.consume('a', 1, operation())
    await waitUntil(
      'it was told',
      () => events.some(({ error }) => error !== undefined) || undefined,
    )
    await follower.stop()
    expect(seen.map(({ book }) => book)).toEqual([quota.name])
    expect(await allFor(name, { book: other.name })).toMatchObject([{ key: 'b' }])
  })

  test.each([
    [{ name: '' }, 'LEDGER_NAME_INVALID'],
    [{ name: 'x', book: '' }, 'LEDGER_NAME_INVALID'],
    [{ name: 'x', batch: 0 }, 'OPTION_INVALID'],
    [{ name: 'x', from: 'yesterday' }, 'OPTION_INVALID'],
  ])('is refused what makes no sense: %j', async (options, code) => {
    const wrong = fixture.hf.ledger.follow(options as { name: string }, async () => {})
    await expect(wrong).rejects.toMatchObject({ code })
  })
})

describe('a follower that is started', () => {
  test('reads what comes, tells what goes wrong, and stops', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const [name, book] = [fresh(), quota.name]
    const events = eventsOn<EventMap['ledger.followed']>('holdfast:ledger.followed')
    const seen: Seen[] = []
    let fails = true
    const both = Promise.withResolvers<void>()
    const follower = fixture.hf.ledger.startFollower(
      { name, book, every: 5 },
      async (_, movements) => {
        if (fails) {
          fails = false
          throw new Error('once')
        }
        seen.push(...movements)
        if (seen.length === 2) both.resolve()
      },
    )
    await quota.consume('a', 1, operation())
    await quota.consume('b', 1, operation())
    await both.promise
    await follower.stop()
    await quota.consume('c', 1, operation())
    expect(seen.map(({ key }) => key).toSorted()).toEqual(['a', 'b'])
    const [failed, ...rest] = events.filter((told) => told.name === name)
    expect(failed).toMatchObject({ movements: 0, error: { message: 'once' } })
    expect(rest.reduce((sum, { movements }) => sum + movements, 0)).toBe(2)
    expect(await allFor(name, { book })).toMatchObject([{ key: 'c' }])
  })
})

describe('months', () => {
  beforeEach(async () => {
    await emptyLedger(fixture.observer)
    await fixture.observer.query('DELETE FROM holdfast.follower; DELETE FROM holdfast.followed')
  })

  const quotaOf = (): ReturnType<typeof fixture.hf.quota<'number'>> =>
    fixture.hf.quota({ name: 'kept', limit: 10, per: 'lifetime' })

  test('are not dropped before they were read, or the follower is forgotten', async () => {
    const quota = quotaOf()
    await quota.consume('a', 1, operation())
    const name = fresh()
    expect(await allFor(name)).toHaveLength(1)
    await quota.consume('a', 1, operation())
    await growOlder(fixture.observer, 6)
    await fixture.observer.query(
      "UPDATE holdfast.follower SET read_up_to = read_up_to - interval '6 months'",
    )
    expect(await fixture.hf.ledger.maintain({ keepMonths: 1 })).toMatchObject({
      monthsDropped: [],
      heldBy: name,
    })
    expect(await allFor(name)).toMatchObject([{ sequence: 2, before: { debited: 1 } }])
    const { monthsDropped, heldBy } = await fixture.hf.ledger.maintain({ keepMonths: 1 })
    expect(monthsDropped).toHaveLength(1)
    expect(heldBy).toBeUndefined()
    await quota.consume('a', 1, operation())
    // What stood before is that of the checkpoint now.
    expect(await allFor(name)).toMatchObject([{ sequence: 3, before: { debited: 2 } }])
    expect(await allFor(fresh())).toMatchObject([{ sequence: 3, before: { debited: 2 } }])
  })

  test('that somebody dropped by hand are missed, and that is told', async () => {
    const quota = quotaOf()
    const name = fresh()
    await quota.consume('a', 1, operation())
    await allFor(name)
    await quota.consume('a', 1, operation())
    await quota.consume('a', 1, operation())
    await asSuperuser(fixture.observer, 'DELETE FROM holdfast.movement WHERE seq = 2')
    await expect(allFor(name)).rejects.toMatchObject({ code: 'LEDGER_MOVEMENTS_GONE' })
  })

  test('whose accounts were forgotten do not hide what comes next', async () => {
    const rate = fixture.hf.quota({ name: 'rated', limit: 5, rate: '1 s' })
    const name = fresh()
    await rate.consume('a', 1, operation())
    await rate.consume('a', 1, operation())
    expect(await allFor(name)).toHaveLength(2)
    await growOlder(fixture.observer, 6)
    const { windowsForgotten } = await fixture.hf.ledger.maintain({ keepMonths: 1 })
    expect(windowsForgotten).toBe(1)
    await rate.consume('a', 1, operation())
    expect(await allFor(name)).toMatchObject([{ sequence: 1 }])
  })
})

/** Writers, transactions that stay open and roll back, readers that fail and are killed, all at once. */
async function chaos(hf: Holdfast<pg.PoolClient>, pool: pg.Pool, book: string): Promise<string[]> {
  const quota = hf.quota({ name: book, limit: 1_000_000, per: 'lifetime' })
  const name = fresh()
  let writing = true
  const writer = async (seed: number): Promise<void> => {
    for (let round = 0; round < 25; round += 1) {
      const key = `k${(seed * 7 + round * 3) % 5}`
      if (round % 3 === 0) {
        await quota.consume(key, 1, operation())
        continue
      }
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await quota.consume(client, key, 1, operation())
        await client.query(`SELECT pg_sleep(${(seed % 3) * 0.004})`)
        await client.query(round % 5 === 1 ? 'ROLLBACK' : 'COMMIT')
      } finally {
        client.release()
      }
    }
  }
  const reader = async (seed: number): Promise<void> => {
    for (let round = 0; writing || round % 2 === 1; round += 1) {
      try {
        await hf.ledger.follow({ name, book, batch: 1 + (seed % 3) * 4 }, async (tx, movements) => {
          for (const { id } of movements) {
            await tx.query('INSERT INTO read VALUES ($1, $2)', [name, id])
          }
          if ((seed + round) % 4 === 0) throw new Error('a handler that fails')
          if ((seed + round) % 7 === 0)
            await tx.query('SELECT pg_terminate_backend(pg_backend_pid())')
        })
      } catch {
        // The next round has it again.
      }
    }
  }
  const readers = [1, 2, 3].map(reader)
  await Promise.all([1, 2, 3, 4].map(writer))
  writing = false
  await Promise.all(readers)
  await hf.ledger.follow({ name, book }, async (tx, movements) => {
    for (const { id } of movements) await tx.query('INSERT INTO read VALUES ($1, $2)', [name, id])
  })
  return await written(name)
}

async function chaosPool(): Promise<pg.Pool> {
  const pool = new pg.Pool({ ...fixture.pool.options, max: 12 })
  // Of the backends that the readers end.
  pool.on('error', () => {})
  onTestFinished(async () => {
    await pool.end()
  })
  const client = await pool.connect()
  client.release()
  return pool
}

describe('under chaos', () => {
  test('every movement that was committed is read once', async () => {
    const pool = await chaosPool()
    const book = fresh()
    const read = await chaos(createHoldfast(fromPg(pool)), pool, book)
    expect(read).toEqual(await stored('holdfast', book))
    expect(read.length).toBeGreaterThan(50)
  })

  test('control: readers of one name that do not keep each other out read twice', async () => {
    const schema = 'crowded'
    await migrateFiles(
      fromPg(fixture.observer),
      weakened('follow', /FOR NO KEY UPDATE SKIP LOCKED/, ''),
      { schema },
    )
    const hf = fixture.create({ ledger: { schema } })
    const quota = hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const [name, book] = [fresh(), quota.name]
    await quota.consume('a', 1, operation())
    const reached = Promise.withResolvers<number>()
    const go = Promise.withResolvers<void>()
    let times = 0
    const read = (): Promise<unknown> =>
      hf.ledger.follow({ name, book }, async (tx) => {
        times += 1
        reached.resolve(await pidOf(tx))
        await go.promise
      })
    const first = read()
    const pid = await reached.promise
    const second = read()
    // It has read the same, and waits only to write the same place.
    await waitUntil('the other one is blocked', async () => {
      const { rows } = await fixture.observer.query(
        'SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))',
        [pid],
      )
      return rows.length > 0 || undefined
    })
    go.resolve()
    await Promise.all([first, second])
    expect(times).toBe(2)
  })
})

describe('thresholds', () => {
  test('are reached once for each crossing, whatever the steps', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    const [name, book] = [fresh(), quota.name]
    const told = async (): Promise<(readonly (number | bigint)[])[]> =>
      (await allFor(name, { book })).map((movement) => [
        ...reachedShares(movement, [0.8, 1]),
        ...fellBelow(movement, [5]),
      ])
    const used = await quota.consume('a', 7, operation())
    expect(await told()).toEqual([[5]])
    await quota.consume('a', 1, { operationId: 'eighth' })
    await quota.consume('a', 1, operation())
    await quota.consume('a', 1, operation())
    expect(await told()).toEqual([[0.8], [], [1]])
    expect(used.ok).toBe(true)
    await quota.refund('a', 1, { ...operation(), of: 'eighth' })
    await quota.consume('a', 1, operation())
    expect(await told()).toEqual([[], [1]])
    await quota.setLimit('a', 100, operation())
    await quota.setLimit('a', 10, operation())
    expect(await told()).toEqual([[], [0.8, 1, 5]])
  })

  test.each([
    [7, 100, 0.07, true],
    [6, 100, 0.07, false],
    [1, 0, 1, true],
    [0, 0, 1, false],
  ])('%i of %i at %d: %s', (debited, allowance, share, isReached) => {
    const step = { credited: 0, held: 0, allowance, sequence: 1 }
    const before = { ...step, debited: 0, available: allowance }
    const movement = { ...step, debited, available: allowance - debited, before }
    expect(reachedShares(movement, [share])).toEqual(isReached ? [share] : [])
    expect(() => reachedShares(movement, [0])).toThrow(/share/)
  })
})
