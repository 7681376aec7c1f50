import { describe, expect, test } from 'vitest'
import { lockRequest, numbered, take } from './support/lock-request.ts'
import { onEveryVersion, type Place } from './support/on-every-version.ts'
import { sqlStateFrom } from './support/session.ts'

/** Two sessions close a cycle over keys 1 and 2, each with its own settings. */
async function cycle(place: Place, first: string, second: string): Promise<(string | undefined)[]> {
  await using one = await place.open()
  await using two = await place.open()
  await one.rows(`BEGIN; ${first}; SELECT pg_advisory_xact_lock(1)`)
  await two.rows(`BEGIN; ${second}; SELECT pg_advisory_xact_lock(2)`)
  // A failed transaction has let go of its locks, so the other one gets through.
  const waiting = sqlStateFrom(one.rows('SELECT pg_advisory_xact_lock(2)'))
  await using observer = await place.open()
  await observer.seesWaiting(one)
  const closing = sqlStateFrom(two.rows('SELECT pg_advisory_xact_lock(1)'))
  return [await waiting, await closing]
}

onEveryVersion((place) => {
  describe('a cycle of two sessions', () => {
    test('ends as a deadlock where the detector comes first', async () => {
      const settings = `SET LOCAL deadlock_timeout = '50ms'; SET LOCAL lock_timeout = 0`
      const ends = await cycle(place, settings, settings)
      expect(ends.filter((state) => state !== undefined)).toEqual(['40P01'])
    })

    // So a deadlock can come disguised as a timeout: a limit below deadlock_timeout hides it.
    test('ends as a timeout where the limit comes first', async () => {
      const settings = `SET LOCAL lock_timeout = '1s'`
      expect(await cycle(place, settings, 'SET LOCAL lock_timeout = 0')).toEqual([
        '55P03',
        undefined,
      ])
    })
  })

  test('statement_timeout counts the wait, and ours ends just before it, as a wait for a lock', async () => {
    await using holder = await place.open()
    await using waiter = await place.open()
    await holder.rows('BEGIN; SELECT pg_advisory_xact_lock(1)')
    await waiter.rows(`SET statement_timeout = '100ms'`)
    expect(await sqlStateFrom(waiter.rows('SELECT pg_advisory_xact_lock(1)'))).toBe('57014')
    await waiter.rows('BEGIN')
    expect(await sqlStateFrom(take(waiter, lockRequest(numbered(1))))).toBe('55P03')
  })
})
