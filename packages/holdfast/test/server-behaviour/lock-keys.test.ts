import { describe, expect, test } from 'vitest'
import { legacyKey, lockKey } from '../../src/core/locks/lock-key.ts'
import {
  lockHolders,
  locksAreReal,
  stillHeld,
} from '../../src/engines/postgres/locks/lock-holders.ts'
import { lockRequest, take, wanted } from './support/lock-request.ts'
import { onEveryVersion } from './support/on-every-version.ts'
import { Session } from './support/session.ts'
import type { LockKey } from '../../src/core/locks/wanted-lock.ts'

const least = -(2n ** 63n)
const most = 2n ** 63n - 1n
const intLeast = -(2 ** 31)
const intMost = 2 ** 31 - 1

/** Keys of ours, the arguments that hand-written SQL gives, and a key that must be another lock. */
const pairs: readonly { ours: LockKey; byHand: string; another: LockKey }[] = [
  {
    ours: legacyKey.hashtext('user-42'),
    byHand: `hashtext('user-42')`,
    another: legacyKey.hashtext('user-43'),
  },
  {
    // hashtext gives negative numbers too; the widening to 64 bits must keep the sign.
    ours: legacyKey.hashtext('a'),
    byHand: `hashtext('a')`,
    another: legacyKey.hashtext('A'),
  },
  { ours: legacyKey.bigint(42), byHand: '42', another: legacyKey.pair(0, 42) },
  { ours: legacyKey.bigint(-1), byHand: '-1', another: legacyKey.pair(-1, -1) },
  { ours: legacyKey.bigint(least), byHand: String(least), another: legacyKey.bigint(most) },
  { ours: legacyKey.pair(0, 42), byHand: '0, 42', another: legacyKey.bigint(42) },
  { ours: legacyKey.pair(-7, -1), byHand: '-7, -1', another: legacyKey.pair(-8, -1) },
  {
    ours: legacyKey.pair(intLeast, intMost),
    byHand: `${intLeast}, ${intMost}`,
    another: legacyKey.pair(intMost, intLeast),
  },
  {
    ours: legacyKey.pair(3, { hashtext: 'cart' }),
    byHand: `3, hashtext('cart')`,
    another: legacyKey.pair(4, { hashtext: 'cart' }),
  },
]

/** Which number is locked, and how it is found again. */
onEveryVersion((place) => {
  const free = async (session: Session, key: LockKey): Promise<boolean> =>
    (await take(session, lockRequest(wanted([key]), { attempt: true, limitMs: undefined })))
      .complete

  describe.each(pairs)('$ours.name and ($byHand)', ({ ours, byHand, another }) => {
    test('exclude each other, both ways', async () => {
      await using old = await place.open()
      await using fresh = await place.open()
      await old.rows(`BEGIN; SELECT pg_advisory_xact_lock(${byHand})`)
      expect(await free(fresh, ours)).toBe(false)
      expect(await free(fresh, another)).toBe(true)
      await old.rows('COMMIT')

      await fresh.rows('BEGIN')
      await take(fresh, lockRequest(wanted([ours])))
      expect(await old.value(`SELECT pg_try_advisory_xact_lock(${byHand})`)).toBe(false)
      await fresh.rows('COMMIT')
      expect(await old.value(`SELECT pg_try_advisory_xact_lock(${byHand})`)).toBe(true)
    })

    test('have a holder that pg_locks tells by the same number', async () => {
      await using holder = await place.open()
      await using other = await place.open()
      await holder.rows('BEGIN')
      const { granted } = await take(holder, lockRequest(wanted([ours])))
      const [token] = granted
      const holders = lockHolders(wanted([ours]), 0)
      const held = stillHeld([{ pid: holder.pid, space: token?.space ?? 0, id: token?.id ?? 0n }])
      expect(await other.rows(holders.text, holders.values)).toMatchObject([
        { pid: String(holder.pid) },
      ])
      expect(await other.rows(held.text, held.values)).toEqual([{ pid: String(holder.pid) }])

      const wrong = lockHolders(wanted([another]), 0)
      expect(await other.rows(wrong.text, wrong.values)).toMatchObject([{ pid: null }])
      await holder.rows('COMMIT')
      expect(await other.rows(held.text, held.values)).toEqual([])
    })
  })

  test('a lock of another database is another lock', async () => {
    await using holder = await place.open()
    await holder.rows('CREATE DATABASE elsewhere TEMPLATE template0')
    await using other = await Session.open(place.server().url('elsewhere'))
    await holder.rows('BEGIN')
    await take(holder, lockRequest(wanted([lockKey('cart', 1)])))
    expect(await free(other, lockKey('cart', 1))).toBe(true)
    const holders = lockHolders(wanted([lockKey('cart', 1)]), 0)
    expect(await other.rows(holders.text, holders.values)).toMatchObject([{ pid: null }])
  })

  describe('trying', () => {
    test('takes what is free, says what is not, and waits for nothing', async () => {
      await using holder = await place.open()
      await using other = await place.open()
      const [a, b, c] = [1, 2, 3].map((id) => legacyKey.bigint(id)) as [LockKey, LockKey, LockKey]
      await holder.rows('BEGIN')
      await take(holder, lockRequest(wanted([b])))
      await other.rows('BEGIN')
      const request = lockRequest(wanted([c, b, a]), { attempt: true, limitMs: undefined })
      const answer = await take(other, request)
      expect(answer.complete).toBe(false)
      expect(answer.granted.map(({ id }) => id)).toEqual([1n, 3n])
      expect(await holder.advisoryLocksOf(other)).toEqual(['1:1', '1:3'])
      await holder.rows('COMMIT')
      expect((await take(other, request)).complete).toBe(true)
    })

    test('shared locks go together, and keep an exclusive one out', async () => {
      await using one = await place.open()
      await using two = await place.open()
      const key = lockKey('report', 1)
      const shared = lockRequest(wanted([key], 'shared'), { attempt: true, limitMs: undefined })
      await one.rows('BEGIN')
      await two.rows('BEGIN')
      expect((await take(one, shared)).complete).toBe(true)
      expect((await take(two, shared)).complete).toBe(true)
      expect(await free(two, key)).toBe(false)
      await one.rows('COMMIT')
      expect(await free(two, key)).toBe(true)
    })
  })

  test('whether locks are real shows in pg_locks', async () => {
    await using session = await place.open()
    await session.rows('BEGIN')
    // Control: without a lock there is nothing to see.
    expect(await session.run(locksAreReal)).toEqual({ real: 'false', alone: 'false' })
    await take(session, lockRequest(wanted([lockKey('cart', 1)])))
    expect(await session.run(locksAreReal)).toEqual({ real: 'true', alone: 'false' })
  })
})
