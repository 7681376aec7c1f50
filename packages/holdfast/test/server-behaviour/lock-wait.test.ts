import { waitUntil } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import type { LockRequest } from '../../src/engines/postgres/locks/locks.ts'
import { lockRequest, numbered, take } from './support/lock-request.ts'
import { onEveryVersion } from './support/on-every-version.ts'
import { type Session, sqlStateFrom } from './support/session.ts'
import { inTime } from '../support/in-time.ts'

const lockNotAvailable = '55P03'

const shapes = [
  { shape: 'one key', ids: [1] },
  { shape: 'two keys', ids: [1, 2] },
]

/** The limit of a wait: when it is set, how long it holds, and that it leaves nothing behind. */
onEveryVersion((place) => {
  async function holding(...ids: readonly number[]): Promise<Session> {
    const holder = await place.open()
    await holder.rows('BEGIN')
    for (const id of ids) await holder.rows('SELECT pg_advisory_xact_lock($1)', [id])
    return holder
  }

  /** Milliseconds until the promise ends, and the SQLSTATE if it failed. */
  async function timed(
    work: () => Promise<unknown>,
  ): Promise<{ ms: number; state: string | undefined }> {
    const began = performance.now()
    const state = await sqlStateFrom(work())
    return { ms: performance.now() - began, state }
  }

  test('brief: where there is a setting to be heeded, it does not wait', async () => {
    const request = (other: Partial<LockRequest>): LockRequest =>
      lockRequest(numbered(1), { brief: true, yields: true, ...other })
    await using holder = await holding(1)
    for (const [setting, first] of [
      ['lock_timeout', false],
      ['lock_timeout', true],
      ['statement_timeout', false],
    ] as const) {
      await using waiter = await place.open()
      await waiter.rows(`SET ${setting} = '20s'`)
      await waiter.rows('BEGIN')
      const answer = await take(waiter, request({ first }))
      expect(answer).toMatchObject({ refused: undefined, granted: [], complete: false })
      expect(await waiter.value(`SHOW ${setting}`)).toBe('20s')
    }
    // Else it waits, and leaves no limit behind.
    await using waiter = await place.open()
    await waiter.rows('BEGIN')
    expect((await timed(() => take(waiter, request({ limitMs: 50 })))).state).toBe(lockNotAvailable)
    await waiter.rows('ROLLBACK; BEGIN')
    const waiting = take(waiter, request({}))
    await holder.seesWaiting(waiter)
    await holder.rows('COMMIT')
    expect(await waiting).toMatchObject({ complete: true })
    expect(await waiter.value('SHOW lock_timeout')).toBe('0')
  })

  describe.each(shapes)('$shape', ({ ids }) => {
    const request = (other?: Partial<LockRequest>): LockRequest =>
      lockRequest(numbered(...ids), other)

    test.each(['0', '7s', '90min', '1d'])(
      'the limit rules while waiting, and lock_timeout is %s again after',
      async (setting) => {
        await using holder = await holding(1)
        await using waiter = await place.open()
        await waiter.rows(`SET lock_timeout = '${setting}'`)
        await waiter.rows('BEGIN')
        const waiting = timed(() => take(waiter, request({ limitMs: 250 })))
        expect((await holder.seesWaiting(waiter)).blockers).toEqual([holder.pid])
        const { ms, state } = await waiting
        expect(state).toBe(lockNotAvailable)
        expect(ms).toBeGreaterThan(245)
        inTime(ms, 5_000)
        await waiter.rows('ROLLBACK')
        expect(await waiter.value('SHOW lock_timeout')).toBe(setting)

        // And where the lock was granted, already in the same transaction.
        await holder.rows('ROLLBACK')
        await waiter.rows('BEGIN')
        await take(waiter, request({ limitMs: 250 }))
        expect(await waiter.value('SHOW lock_timeout')).toBe(setting)
      },
    )

    test('a lock_timeout of the transaction itself is restored as well', async () => {
      await using holder = await holding(1)
      await using waiter = await place.open()
      await waiter.rows(`SET lock_timeout = '3s'`)
      await waiter.rows(`BEGIN; SET LOCAL lock_timeout = '1d'`)
      const waiting = take(waiter, request())
      await holder.seesWaiting(waiter)
      await holder.rows('COMMIT')
      await waiting
      expect(await waiter.value('SHOW lock_timeout')).toBe('1d')
      await waiter.rows('COMMIT')
      expect(await waiter.value('SHOW lock_timeout')).toBe('3s')
    })

    test('control: without a limit of ours the caller’s own rules', async () => {
      await using holder = await holding(1)
      await using waiter = await place.open()
      await waiter.rows(`SET lock_timeout = '200ms'`)
      await waiter.rows('BEGIN')
      const waiting = timed(() => take(waiter, request({ limitMs: undefined, yields: true })))
      await holder.seesWaiting(waiter)
      const { ms, state } = await waiting
      expect(state).toBe(lockNotAvailable)
      inTime(ms, 5_000)
      await waiter.rows('ROLLBACK')
      expect(await waiter.value('SHOW lock_timeout')).toBe('200ms')
    })

    test('the client’s own timer bounds the wait, counted from BEGIN', async () => {
      await using holder = await holding(1)
      await using waiter = await place.open()
      await waiter.rows('BEGIN')
      await holder.seesRunningFor(waiter, 600)
      const { ms, state } = await timed(() => take(waiter, request({ budgetMs: 900 })))
      expect(state).toBe(lockNotAvailable)
      // 600 of the 900 had passed.
      inTime(ms, 850)
    })

    test('a budget that is already spent still gives a free lock, and ends a wait at once', async () => {
      await using holder = await holding(1)
      await using waiter = await place.open()
      await waiter.rows('BEGIN')
      await holder.seesRunningFor(waiter, 20)
      const { ms, state } = await timed(() => take(waiter, request({ budgetMs: 1 })))
      expect(state).toBe(lockNotAvailable)
      inTime(ms, 1_000)
      await holder.rows('COMMIT')
      await waiter.rows('ROLLBACK; BEGIN')
      await holder.seesRunningFor(waiter, 20)
      expect((await take(waiter, request({ budgetMs: 1 }))).complete).toBe(true)
    })
  })

  describe('one limit for several keys', () => {
    /** The first key is let go halfway to the limit, then the second is waited for. */
    async function halfwayThenMore(acquire: (waiter: Session) => Promise<unknown>) {
      await using first = await holding(1)
      await using second = await holding(2)
      await using waiter = await place.open()
      await waiter.rows('BEGIN')
      const waiting = timed(() => acquire(waiter))
      expect((await second.seesWaiting(waiter)).blockers).toEqual([first.pid])
      await second.seesRunningFor(waiter, 500)
      await first.rows('COMMIT')
      await waitUntil('the waiter is at the second key', async () => {
        const blockers = await second.value('SELECT pg_blocking_pids($1)', [waiter.pid])
        return (blockers as number[]).includes(second.pid) ? true : undefined
      })
      return await waiting
    }

    test('ours counts from the start of the acquisition', async () => {
      const { ms, state } = await halfwayThenMore(
        async (waiter) => await take(waiter, lockRequest(numbered(2, 1), { limitMs: 1_000 })),
      )
      expect(state).toBe(lockNotAvailable)
      expect(ms).toBeGreaterThan(990)
      inTime(ms, 1_400)
    })

    test('control: lock_timeout alone starts again at every lock', async () => {
      const { ms, state } = await halfwayThenMore(async (waiter) => {
        await waiter.rows(`SET LOCAL lock_timeout = '1s'`)
        return await waiter.rows('SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock(2)')
      })
      expect(state).toBe(lockNotAvailable)
      expect(ms).toBeGreaterThan(1_490)
    })
  })

  describe.each(['force_custom_plan', 'force_generic_plan'])('with %s', (mode) => {
    const set = (value: string): string => `set_config('holdfast.test', ${value}, true)`
    const now = `current_setting('holdfast.test', true)`

    /** Runs it prepared, as drivers do, with the values '1' and '2'. */
    async function prepared(text: string): Promise<unknown[]> {
      await using session = await place.open()
      await session.rows(`SET plan_cache_mode = ${mode}`)
      await session.rows(`BEGIN; SELECT ${set(`'0'`)}`)
      await session.rows(`PREPARE steps(text, text) AS ${text}`)
      return Object.values((await session.rows(`EXECUTE steps('1', '2')`))[0] ?? {})
    }

    test('a target list is evaluated from left to right', async () => {
      const forward = `SELECT ${set('$1')} AS a, ${now} AS b, ${set('$2')} AS c, ${now} AS d`
      expect(await prepared(forward)).toEqual(['1', '1', '2', '2'])
      // Control: the same calls in another order see other values.
      const backward = `SELECT ${now} AS d, ${set('$2')} AS c, ${now} AS b, ${set('$1')} AS a`
      expect(await prepared(backward)).toEqual(['0', '2', '2', '1'])
    })

    test('so are the arguments of a function', async () => {
      const forward = `SELECT concat_ws('|', ${set('$1')}, ${now}, ${set('$2')}, ${now})`
      expect(await prepared(forward)).toEqual(['1|1|2|2'])
      const backward = `SELECT concat_ws('|', ${now}, ${set('$2')}, ${now}, ${set('$1')})`
      expect(await prepared(backward)).toEqual(['0|2|2|1'])
    })

    test('what is left out of the answer is evaluated in its place all the same', async () => {
      const silently = `CASE WHEN ${set('$1')} IS NULL THEN '' END`
      expect(await prepared(`SELECT concat_ws('|', ${now}, ${silently}, ${now})`)).toEqual(['0|1'])
    })
  })
})
