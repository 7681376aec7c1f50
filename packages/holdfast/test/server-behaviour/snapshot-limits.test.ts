import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { onEveryVersion } from './support/on-every-version.ts'
import { sqlStateFrom } from './support/session.ts'
import { readersWrite, reset, schema, writerWork } from './support/snapshot-schema.ts'

/** What SERIALIZABLE does and does not add to an advisory lock. */
onEveryVersion((place) => {
  beforeAll(async () => {
    await using session = await place.open()
    await session.rows(schema)
  })
  beforeEach(async () => {
    await using session = await place.open()
    await session.rows(reset)
  })

  describe('a serializable transaction that waited for an advisory lock', () => {
    /** The reader waits, reads, perhaps writes, and commits. Gives the seats it saw. */
    async function readAfterWait(writerLevel: string, write: boolean): Promise<unknown> {
      await using writer = await place.open()
      await using reader = await place.open()
      await writer.rows(`BEGIN ISOLATION LEVEL ${writerLevel}; ${writerWork}`)
      await reader.rows('BEGIN ISOLATION LEVEL SERIALIZABLE')
      const waiting = reader.rows('SELECT pg_advisory_xact_lock(1)')
      await writer.seesWaiting(reader)
      await writer.rows('COMMIT')
      await waiting
      const seen = await reader.value('SELECT count(*)::int FROM seats')
      if (write) await reader.rows(readersWrite)
      await reader.rows('COMMIT')
      return seen
    }

    test('is refused when it writes and the writer was serializable as well', async () => {
      expect(await sqlStateFrom(readAfterWait('SERIALIZABLE', true))).toBe('40001')
    })

    test('commits a stale read silently when it writes nothing', async () => {
      expect(await readAfterWait('SERIALIZABLE', false)).toBe(1)
    })

    // Only transactions that are themselves serializable are watched by PostgreSQL.
    test.each(['READ COMMITTED', 'REPEATABLE READ'])(
      'commits a stale check silently when the writer ran at %s',
      async (level) => {
        expect(await readAfterWait(level, true)).toBe(1)
      },
    )
  })

  test('an SQL function is inlined where the truth table says so', async () => {
    await using session = await place.open()
    const plan = async (text: string): Promise<string> =>
      (await session.rows(`EXPLAIN (VERBOSE, COSTS OFF) ${text}`))
        .map((row) => row['QUERY PLAN'])
        .join('\n')
    expect(await plan('SELECT sql_inlined_lock()')).toContain('pg_advisory_xact_lock')
    expect(await plan('SELECT * FROM sql_inlined_read()')).toContain('on public.seats')
    // Control: these stay calls, whose inside the plan does not show.
    expect(await plan('SELECT sql_volatile()')).not.toContain('pg_advisory_xact_lock')
    expect(await plan('SELECT sql_volatile_count()')).not.toContain('on public.seats')
  })

  test('rows of ORDER BY … FOR UPDATE may come out of order after a wait', async () => {
    await using writer = await place.open()
    await using reader = await place.open()
    await writer.rows('INSERT INTO seats VALUES (2, 2)')
    await writer.rows('BEGIN; UPDATE seats SET version = 9 WHERE id = 1')
    const reading = reader.rows('SELECT id, version FROM seats ORDER BY version FOR UPDATE')
    await writer.seesWaiting(reader)
    await writer.rows('COMMIT')
    expect(await reading).toEqual([
      { id: 1, version: 9 },
      { id: 2, version: 2 },
    ])
  })
})
