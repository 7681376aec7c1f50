import { barrier, deferred, waitUntilBlocked } from '@holdfast/testkit'
import { beforeEach, describe, expect, test } from 'vitest'
import { legacyKey, lockKey, shared } from '../../../src/index.ts'
import { callerTransaction, pgFixture, pidOf } from '../../support/pg-fixture.ts'

const fixture = pgFixture('CREATE TABLE seats (room text NOT NULL, taker int NOT NULL)')

/** Check-then-write over the user's own table: one seat, many takers, all let go at once. */
async function takeSeat(
  room: string,
  takers: number,
  take: (
    body: (tx: { query(text: string, values: unknown[]): Promise<unknown> }) => Promise<boolean>,
  ) => Promise<boolean>,
): Promise<number> {
  const start = barrier(takers)
  const accepted = await Promise.all(
    Array.from({ length: takers }, async (_, taker) => {
      await start()
      return take(async (tx) => {
        const { rows } = (await tx.query('SELECT count(*)::int AS n FROM seats WHERE room = $1', [
          room,
        ])) as { rows: { n: number }[] }
        if ((rows[0]?.n ?? 0) > 0) return false
        await tx.query('INSERT INTO seats VALUES ($1, $2)', [room, taker])
        return true
      })
    }),
  )
  return accepted.filter(Boolean).length
}

describe('guard', () => {
  test('accepts exactly one of many concurrent takers, every round', async () => {
    for (let round = 0; round < 20; round += 1) {
      const room = `guarded-${round}`
      const accepted = await takeSeat(room, 15, (body) =>
        fixture.hf.guard(lockKey('seat', room), body),
      )
      expect(accepted).toBe(1)
    }
  })

  test('control: the same takers in a plain transaction over-accept', async () => {
    let worst = 0
    for (let round = 0; round < 20 && worst < 2; round += 1) {
      const room = `unguarded-${round}`
      worst = Math.max(worst, await takeSeat(room, 15, (body) => fixture.hf.tx.run(body)))
    }
    expect(worst).toBeGreaterThan(1)
  })

  test('leaves other keys alone while one is held', async () => {
    const entered = deferred()
    const leave = deferred()
    const holder = fixture.hf.guard(lockKey('seat', 'held'), async () => {
      entered.resolve()
      await leave.promise
    })
    await entered.promise
    await expect(fixture.hf.guard(lockKey('seat', 'other'), async () => 'in')).resolves.toBe('in')
    leave.resolve()
    await holder
  })

  test('returns what the body returned and rolls back what it threw', async () => {
    await expect(
      fixture.hf.guard(lockKey('seat', 'thrown'), async (tx) => {
        await tx.query("INSERT INTO seats VALUES ('thrown', 1)")
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    const { rows } = await fixture.observer.query("SELECT FROM seats WHERE room = 'thrown'")
    expect(rows).toHaveLength(0)
  })
})

describe('modes and keys', () => {
  let keyNumber = 0
  beforeEach(() => {
    keyNumber += 1
  })
  const key = () => lockKey('mode', keyNumber)

  test('shared holders do not exclude each other, an exclusive one waits for all', async () => {
    const [one, two, writer] = [
      await callerTransaction(fixture),
      await callerTransaction(fixture),
      await callerTransaction(fixture),
    ]
    await fixture.hf.locks.acquire(one, shared(key()))
    await fixture.hf.locks.acquire(two, shared(key()))
    const pids = [await pidOf(one), await pidOf(two)]
    const writerPid = await pidOf(writer)
    const writing = fixture.hf.locks.acquire(writer, key(), { waitMs: 20_000 })
    const blockers = await waitUntilBlocked(fixture.observer, writerPid)
    expect(new Set(blockers)).toEqual(new Set(pids))
    await one.query('COMMIT')
    await two.query('COMMIT')
    await writing
  })

  test('duplicates are merged to the strongest mode', async () => {
    const holder = await callerTransaction(fixture)
    const other = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, [shared(key()), key(), shared(key())])
    expect(await fixture.hf.locks.tryAcquire(other, shared(key()))).toBe(false)
  })

  const handwritten: [string, Parameters<typeof fixture.hf.locks.acquire>[1], string][] = [
    ['hashtext', legacyKey.hashtext('user-abc-123'), "hashtext('user-abc-123')"],
    ['bigint', legacyKey.bigint(-8739201n), '-8739201'],
    ['pair', legacyKey.pair(8739201, -1), '8739201, -1'],
    ['pair with hashtext', legacyKey.pair(-7, { hashtext: 'x' }), "-7, hashtext('x')"],
  ]
  test.each(handwritten)('%s keys exclude hand-written SQL, both ways', async (_, legacy, sql) => {
    const old = await callerTransaction(fixture)
    const fresh = await callerTransaction(fixture)
    await old.query(`SELECT pg_advisory_xact_lock(${sql})`)
    expect(await fixture.hf.locks.tryAcquire(fresh, legacy)).toBe(false)
    await old.query('COMMIT')
    expect(await fixture.hf.locks.tryAcquire(fresh, legacy)).toBe(true)
    await old.query('BEGIN')
    const { rows } = await old.query(`SELECT pg_try_advisory_xact_lock(${sql}) AS got`)
    expect(rows[0].got).toBe(false)
  })

  test('tryAcquire of several keeps what was free and says no', async () => {
    const holder = await callerTransaction(fixture)
    const other = await callerTransaction(fixture)
    const keys = [lockKey('mode', keyNumber, 'a'), lockKey('mode', keyNumber, 'b')]
    await fixture.hf.locks.acquire(holder, keys[0] as never)
    expect(await fixture.hf.locks.tryAcquire(other, keys)).toBe(false)
    await fixture.hf.locks.assertHeld(other, keys[1] as never)
    await expect(fixture.hf.locks.assertHeld(other, keys[0] as never)).rejects.toMatchObject({
      code: 'LOCK_NOT_HELD',
    })
  })

  test('many keys take one round trip', async () => {
    const client = await callerTransaction(fixture)
    const quiet = fixture.create({ locks: { strict: false } })
    // The first acquisition of a driver also proves, once, that the server's locks are real.
    await quiet.locks.acquire(client, key())
    const keys = Array.from({ length: 100 }, (_, n) => lockKey('mode-many', keyNumber, n))
    let statements = 0
    const { query } = client
    client.query = ((...args: Parameters<typeof query>) => {
      statements += 1
      return query.apply(client, args)
    }) as typeof query
    await quiet.locks.acquire(client, keys)
    expect(statements).toBe(1)
    await quiet.locks.assertHeld(client, keys[57] as never)
  })
})

describe('a marker that somebody has written into', () => {
  test.each([
    ',|,x1,',
    '|||',
    ',x1,|,x2,|',
    'x',
    ',xnonsense,s1/2/3,',
    'standby',
    'stale|',
    '#stale',
  ])('%j makes no lock granted that is busy, and none busy that is free', async (forged) => {
    const { acquire, tryAcquire, assertHeld } = fixture.hf.locks
    const busy = [lockKey('forged', 'busy', forged), lockKey('forged', 'too', forged)]
    const holder = await callerTransaction(fixture)
    await acquire(holder, busy)
    const client = await callerTransaction(fixture)
    const forge = async (): Promise<unknown> =>
      await client.query("SELECT set_config('holdfast.held', $1, true)", [forged])
    await forge()
    expect(await tryAcquire(client, busy[0] as never)).toBe(false)
    await forge()
    expect(await tryAcquire(client, busy)).toBe(false)
    const free = lockKey('forged', 'free', forged)
    await forge()
    expect(await tryAcquire(client, free)).toBe(true)
    await forge()
    await acquire(client, [free, lockKey('forged', 'other', forged)])
    await assertHeld(client, free)
  })
})

describe('assertHeld', () => {
  test('T1, S19: does not believe the marker, which a body can set', async () => {
    const client = await callerTransaction(fixture)
    const [held, wanted] = [lockKey('asserted', 'held'), lockKey('asserted', 'never')]
    await fixture.hf.locks.acquire(client, held)
    await client.query("SELECT set_config('holdfast.held', $1, true)", [`,x${wanted.lock.id},`])
    await expect(fixture.hf.locks.assertHeld(client, wanted)).rejects.toMatchObject({
      code: 'LOCK_NOT_HELD',
    })
    await client.query('RESET ALL')
    await fixture.hf.locks.assertHeld(client, held)
  })

  test('follows savepoints: a rolled-back savepoint gives the lock back', async () => {
    const client = await callerTransaction(fixture)
    const other = await callerTransaction(fixture)
    const key = lockKey('held', 'savepoint')
    await client.query('SAVEPOINT s')
    await fixture.hf.locks.acquire(client, key)
    await fixture.hf.locks.assertHeld(client, key)
    await client.query('ROLLBACK TO SAVEPOINT s')
    await expect(fixture.hf.locks.assertHeld(client, key)).rejects.toMatchObject({
      code: 'LOCK_NOT_HELD',
    })
    expect(await fixture.hf.locks.tryAcquire(other, key)).toBe(true)
  })

  test('of several keys names the one that is not held', async () => {
    const client = await callerTransaction(fixture)
    const [first, second] = [lockKey('held', 'first'), lockKey('held', 'second')]
    await fixture.hf.locks.acquire(client, first)
    await expect(fixture.hf.locks.assertHeld(client, [first, second])).rejects.toMatchObject({
      code: 'LOCK_NOT_HELD',
      details: { subject: second.name },
    })
    await fixture.hf.locks.acquire(client, second)
    await fixture.hf.locks.assertHeld(client, [first, second])
  })

  test('tells shared from exclusive', async () => {
    const client = await callerTransaction(fixture)
    const key = lockKey('held', 'shared')
    await fixture.hf.locks.acquire(client, shared(key))
    await fixture.hf.locks.assertHeld(client, shared(key))
    await expect(fixture.hf.locks.assertHeld(client, key)).rejects.toMatchObject({
      code: 'LOCK_NOT_HELD',
    })
  })

  test('is not fooled by the previous transaction of the same connection', async () => {
    const client = await callerTransaction(fixture)
    const key = lockKey('held', 'previous')
    await fixture.hf.locks.acquire(client, key)
    await client.query('COMMIT')
    await client.query('BEGIN')
    await expect(fixture.hf.locks.assertHeld(client, key)).rejects.toMatchObject({
      code: 'LOCK_NOT_HELD',
    })
  })
})
