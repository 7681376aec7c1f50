import { waitUntil } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { isTrue } from '../../src/core/is-true.ts'
import { legacyKey } from '../../src/core/locks/lock-key.ts'
import { heldStatement } from '../../src/engines/postgres/locks/lock-holders.ts'
import { rowsToken } from '../../src/engines/postgres/locks/locks.ts'
import { lockRequest, numbered, take } from './support/lock-request.ts'
import { onEveryVersion } from './support/on-every-version.ts'
import { type Session, sqlStateFrom } from './support/session.ts'

const marker = `SELECT current_setting('holdfast.held', true)`

async function marked(session: Session, id: number): Promise<boolean> {
  return isTrue((await session.run(heldStatement(legacyKey.bigint(id), 'exclusive')))['held'])
}

/** The marker and the name live and die with the lock they tell of. */
onEveryVersion((place) => {
  describe('the marker', () => {
    test('is gone in the next statement under autocommit, like the lock', async () => {
      await using session = await place.open()
      expect((await take(session, lockRequest(numbered(1)))).complete).toBe(true)
      expect(await session.value(marker)).toBe('')
      expect(await marked(session, 1)).toBe(false)
      expect(await session.advisoryLocksOf(session)).toEqual([])
    })

    test('is there in a transaction, like the lock, and grows with each acquisition', async () => {
      await using session = await place.open()
      await session.rows('BEGIN')
      expect((await take(session, lockRequest(numbered(1)))).before).toEqual([])
      expect(await session.value(marker)).toBe(',x1,')
      const second = await take(session, lockRequest(numbered(3, 2)))
      expect(second.before).toEqual([{ mode: 'exclusive', space: 1, id: 1n }])
      expect(await session.value(marker)).toBe(',x1,x2,x3,')
      expect(await session.advisoryLocksOf(session)).toEqual(['1:1', '1:2', '1:3'])

      await session.rows('COMMIT')
      expect(await session.value(marker)).toBe('')
      await session.rows('BEGIN')
      expect((await take(session, lockRequest(numbered(4)))).before).toEqual([])
    })

    test('tells row locks apart from locks by number', async () => {
      const rows = rowsToken('accounts', 'exclusive')
      await using session = await place.open()
      await session.rows('BEGIN')
      await session.rows(`SELECT set_config('holdfast.held', ',${rows},', true)`)
      const answer = await take(session, lockRequest(numbered(1, 2)))
      expect(answer).toMatchObject({ rowsBefore: [rows], before: [], complete: true })
      expect(answer.granted.map(({ id }) => id)).toEqual([1n, 2n])
      expect(await marked(session, 1)).toBe(true)
    })

    test('is undone by ROLLBACK TO SAVEPOINT together with the lock', async () => {
      await using session = await place.open()
      await session.rows('BEGIN')
      await take(session, lockRequest(numbered(1)))
      await session.rows('SAVEPOINT inner_one')
      await take(session, lockRequest(numbered(1)))
      await take(session, lockRequest(numbered(2, 3)))
      expect(await session.advisoryLocksOf(session)).toEqual(['1:1', '1:2', '1:3'])
      await session.rows('ROLLBACK TO SAVEPOINT inner_one')
      expect(await session.value(marker)).toBe(',x1,')
      expect(await session.advisoryLocksOf(session)).toEqual(['1:1'])
    })

    test('is kept by RELEASE SAVEPOINT together with the lock', async () => {
      await using session = await place.open()
      await session.rows('BEGIN; SAVEPOINT inner_one')
      await take(session, lockRequest(numbered(2)))
      await session.rows('RELEASE SAVEPOINT inner_one')
      expect(await session.value(marker)).toBe(',x2,')
      expect(await session.advisoryLocksOf(session)).toEqual(['1:2'])
    })

    test('is undone, like the lock, by a block of plpgsql that fails and goes on', async () => {
      await using session = await place.open()
      await session.rows('BEGIN')
      await session.rows(`DO $$ BEGIN
        PERFORM pg_advisory_xact_lock(1), set_config('holdfast.held', ',x1,', true);
        RAISE EXCEPTION 'no';
      EXCEPTION WHEN raise_exception THEN NULL; END $$`)
      expect(await marked(session, 1)).toBe(false)
      expect(await session.advisoryLocksOf(session)).toEqual([])
    })
  })

  describe('a statement that fails', () => {
    const attempt = async (other: Session): Promise<unknown> =>
      await other.value('SELECT pg_try_advisory_xact_lock(1)')

    /**
     * The server sends the error before it cleans up, and `pg` rejects as soon as it has the error:
     * only the answer to the next statement shows that the first is over.
     */
    async function fail(session: Session): Promise<void> {
      expect(await sqlStateFrom(session.rows('SELECT 1 / 0'))).toBe('22012')
      expect(await sqlStateFrom(session.rows(marker))).toBe('25P02')
    }

    test('gives the locks back by itself, before ROLLBACK', async () => {
      await using holder = await place.open()
      await using other = await place.open()
      await holder.rows('BEGIN')
      await take(holder, lockRequest(numbered(1)))
      // Control: until then the lock is in force.
      expect(await attempt(other)).toBe(false)
      await fail(holder)
      expect(await attempt(other)).toBe(true)
      expect(await other.advisoryLocksOf(holder)).toEqual([])
      // It is still in its transaction, and nobody has rolled it back.
      await waitUntil('the holder is idle', async () => {
        const state = await other.value('SELECT state FROM pg_stat_activity WHERE pid = $1', [
          holder.pid,
        ])
        return state === 'idle in transaction (aborted)' ? true : undefined
      })
    })

    test('in a savepoint gives back only what was taken in it', async () => {
      await using holder = await place.open()
      await using other = await place.open()
      await holder.rows('BEGIN')
      await take(holder, lockRequest(numbered(1)))
      await holder.rows('SAVEPOINT inner_one')
      await take(holder, lockRequest(numbered(2)))
      await fail(holder)
      expect(await other.advisoryLocksOf(holder)).toEqual(['1:1'])
      await holder.rows('ROLLBACK TO SAVEPOINT inner_one')
      expect(await marked(holder, 1)).toBe(true)
      expect(await marked(holder, 2)).toBe(false)
      expect(await attempt(other)).toBe(false)
    })
  })

  test('statements of one simple-protocol string share a transaction, and so its locks', async () => {
    await using session = await place.open()
    const locks = `SELECT count(*)::int AS n FROM pg_locks
      WHERE pid = pg_backend_pid() AND locktype = 'advisory'`
    expect(await session.rows(`SELECT pg_advisory_xact_lock(1); ${locks}`)).toEqual([{ n: 1 }])
    expect(await session.rows(locks)).toEqual([{ n: 0 }])
  })

  describe('application_name', () => {
    const seenBy = async (other: Session, session: Session): Promise<unknown> =>
      await other.value('SELECT application_name FROM pg_stat_activity WHERE pid = $1', [
        session.pid,
      ])

    test.each([
      { shape: 'one key', ids: [1], end: 'COMMIT' },
      { shape: 'one key', ids: [1], end: 'ROLLBACK' },
      { shape: 'two keys', ids: [1, 2], end: 'COMMIT' },
    ])('shows the name of $shape to others until $end', async ({ ids, end }) => {
      await using holder = await place.open()
      await using other = await place.open()
      await holder.rows(`SET application_name = 'shop'`)
      await holder.rows('BEGIN')
      await take(holder, lockRequest(numbered(...ids), { label: 'cart:1' }))
      expect(await seenBy(other, holder)).toBe('shop hf:cart:1')
      // A second name replaces the first; the caller's own stays in front.
      await take(holder, lockRequest(numbered(7), { label: 'stock:7' }))
      expect(await seenBy(other, holder)).toBe('shop hf:stock:7')
      await holder.rows(end)
      expect(await seenBy(other, holder)).toBe('shop')
    })

    test('goes back with ROLLBACK TO SAVEPOINT', async () => {
      await using holder = await place.open()
      await using other = await place.open()
      await holder.rows('BEGIN; SAVEPOINT inner_one')
      await take(holder, lockRequest(numbered(1), { label: 'cart:1' }))
      await holder.rows('ROLLBACK TO SAVEPOINT inner_one')
      expect(await seenBy(other, holder)).toBe('')
    })

    test('keeps to its 63 bytes without an error', async () => {
      await using holder = await place.open()
      await using other = await place.open()
      await holder.rows(`SET application_name = '${'a'.repeat(60)}'`)
      await holder.rows('BEGIN')
      await take(holder, lockRequest(numbered(1), { label: `cart:${'1'.repeat(90)}` }))
      expect(await seenBy(other, holder)).toBe(`${'a'.repeat(24)} hf:cart:${'1'.repeat(30)}`)
    })
  })
})
