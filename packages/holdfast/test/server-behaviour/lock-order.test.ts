import { describe, expect, test } from 'vitest'
import { legacyKey } from '../../src/core/locks/lock-key.ts'
import type { WantedLock } from '../../src/core/locks/wanted-lock.ts'
import type { LockRequest } from '../../src/engines/postgres/locks/locks.ts'
import { lockRequest, numbered, take, wanted } from './support/lock-request.ts'
import { onEveryVersion } from './support/on-every-version.ts'
import type { Session } from './support/session.ts'

/** One statement, many locks: in which order PostgreSQL takes them. */
onEveryVersion((place) => {
  /**
   * A holder sits on one key, so the waiter stops exactly there: what it has been granted by then
   * is what comes before that key.
   */
  async function grantedBefore(
    held: WantedLock,
    acquire: (waiter: Session) => Promise<unknown>,
  ): Promise<string[]> {
    await using holder = await place.open()
    await using waiter = await place.open()
    await holder.rows('BEGIN')
    await take(holder, lockRequest([held]))
    await waiter.rows('BEGIN')
    const acquiring = acquire(waiter)
    await holder.seesWaiting(waiter)
    const granted = await holder.advisoryLocksOf(waiter)
    await holder.rows('COMMIT')
    await acquiring
    return granted
  }

  const ours =
    (locks: readonly WantedLock[], other?: Partial<LockRequest>) => async (waiter: Session) =>
      await take(waiter, lockRequest(locks, other))

  const [ten] = numbered(10) as [WantedLock]

  test('ours: by number, whatever the order they are asked in', async () => {
    expect(await grantedBefore(ten, ours(numbered(30, 20, 10, -5)))).toEqual(['1:-5'])
    expect(await grantedBefore(ten, ours(numbered(-5, 10, 20, 30)))).toEqual(['1:-5'])
  })

  test('ours: also without a limit, and with the client’s own timer', async () => {
    const locks = numbered(30, 20, 10, -5)
    expect(await grantedBefore(ten, ours(locks, { limitMs: undefined }))).toEqual(['1:-5'])
    expect(await grantedBefore(ten, ours(locks, { budgetMs: 60_000 }))).toEqual(['1:-5'])
    expect(await grantedBefore(ten, ours(locks, { label: 'a name' }))).toEqual(['1:-5'])
  })

  test('ours: to the ends of 64 bits, and the two-integer space after the other', async () => {
    const [most] = numbered(2n ** 63n - 1n) as [WantedLock]
    const locks = [
      ...wanted([legacyKey.pair(-2, 7), legacyKey.pair(1, -1)]),
      ...numbered(2n ** 63n - 1n, 0, -(2n ** 63n)),
    ]
    expect(await grantedBefore(most, ours(locks))).toEqual(['1:-9223372036854775808', '1:0'])
    const [pair] = wanted([legacyKey.pair(1, -1)]) as [WantedLock]
    expect(await grantedBefore(pair, ours(locks))).toEqual([
      '1:-9223372036854775808',
      '1:0',
      '1:9223372036854775807',
      // -2 and 7, as one number
      '2:-8589934585',
    ])
  })

  test('ours: three hundred at once', async () => {
    // 7919 is prime, so this visits every number below 300 once, far from sorted.
    const locks = numbered(...Array.from({ length: 300 }, (_, index) => (index * 7919) % 300))
    const [middle] = numbered(150) as [WantedLock]
    const before = Array.from({ length: 150 }, (_, id) => `1:${id}`)
    expect(await grantedBefore(middle, ours(locks))).toEqual(before)
  })

  test('ours: a key asked for twice is taken once, in its strongest mode', async () => {
    await using session = await place.open()
    await session.rows('BEGIN')
    const shared = wanted([legacyKey.bigint(4), legacyKey.bigint(9)], 'shared')
    const answer = await take(session, lockRequest([...shared, ...numbered(9)]))
    expect(answer.granted).toEqual([
      { mode: 'shared', space: 1, id: 4n },
      { mode: 'exclusive', space: 1, id: 9n },
    ])
    expect(
      await session.rows(
        `SELECT objid::int AS id, mode FROM pg_locks WHERE locktype = 'advisory' ORDER BY objid`,
      ),
    ).toEqual([
      { id: 4, mode: 'ShareLock' },
      { id: 9, mode: 'ExclusiveLock' },
    ])
  })

  describe('controls, written by hand', () => {
    const byHand = (text: string) => async (waiter: Session) => await waiter.rows(text)

    test('an array is locked in its own order', async () => {
      const text = `SELECT pg_advisory_xact_lock(id) FROM unnest('{30,20,10,-5}'::int8[]) AS id`
      expect(await grantedBefore(ten, byHand(text))).toEqual(['1:20', '1:30'])
    })

    test('ORDER BY governs the order of the calls', async () => {
      const from = `FROM unnest('{30,20,10,-5}'::int8[]) AS id ORDER BY id`
      const text = `SELECT pg_advisory_xact_lock(id) ${from}`
      expect(await grantedBefore(ten, byHand(text))).toEqual(['1:-5'])
      expect(await grantedBefore(ten, byHand(`${text} DESC`))).toEqual(['1:20', '1:30'])
    })

    test('LIMIT around a lock call does not say which or how many are locked', async () => {
      await using session = await place.open()
      await session.rows('BEGIN')
      await session.rows(
        `SELECT pg_advisory_xact_lock(id) FROM unnest('{3,2,1}'::int8[]) AS id
         WHERE pg_try_advisory_xact_lock(id + 100) LIMIT 1`,
      )
      expect(await session.advisoryLocksOf(session)).toEqual(['1:3', '1:103'])
    })
  })
})
