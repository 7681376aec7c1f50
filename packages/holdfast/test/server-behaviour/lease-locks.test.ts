import { expect, test } from 'vitest'
import { onEveryVersion } from './support/on-every-version.ts'
import { type Session, sqlStateFrom } from './support/session.ts'

/** What the fence of a lease relies on: KEY SHARE in the guard, FOR UPDATE in the take-over. */
onEveryVersion((place) => {
  const table = async (session: Session): Promise<void> => {
    await session.rows(
      `DROP TABLE IF EXISTS seat;
       CREATE TABLE seat (id int PRIMARY KEY, token int, note text);
       INSERT INTO seat VALUES (1, 1)`,
    )
  }
  const guard = 'SELECT token FROM seat WHERE id = 1 FOR KEY SHARE'

  test('KEY SHARE lets updates pass, and stops FOR UPDATE', async () => {
    await using holder = await place.open()
    await using other = await place.open()
    await table(holder)
    await holder.rows(`BEGIN; ${guard}`)
    await other.rows(`UPDATE seat SET note = 'renewed'`)
    expect(await sqlStateFrom(other.rows('SELECT FROM seat FOR UPDATE NOWAIT'))).toBe('55P03')
    expect(await other.rows('SELECT id FROM seat FOR UPDATE SKIP LOCKED')).toEqual([])
    await holder.rows('COMMIT')
    expect(await other.rows('SELECT id FROM seat FOR UPDATE SKIP LOCKED')).toHaveLength(1)
  })

  /** The snapshot is taken, then the lock is: in between the others do what they do. */
  const lateLock = `SELECT token, note FROM seat
    WHERE id = 1 AND pg_advisory_xact_lock(1) IS NOT NULL FOR KEY SHARE`

  test.each([
    ['read committed', 'a row', 2],
    ['repeatable read', 'a conflict', undefined],
  ] as const)('%s, taken after the snapshot: %s', async (level, _, token) => {
    await using holder = await place.open()
    await using other = await place.open()
    await table(holder)
    await other.rows('SELECT pg_advisory_lock(1)')
    await holder.rows(`BEGIN ISOLATION LEVEL ${level}`)
    const locking = holder.rows(lateLock).catch(({ code }: { code: string }) => code)
    await other.seesWaiting(holder)
    // Renewed or released first: a version that KEY SHARE alone would be content with.
    await other.rows(`UPDATE seat SET note = 'released'`)
    await other.rows('BEGIN; SELECT FROM seat FOR UPDATE; UPDATE seat SET token = 2; COMMIT')
    await other.rows('SELECT pg_advisory_unlock(1)')
    const seen = await locking
    if (token === undefined) expect(seen).toBe('40001')
    else expect(seen).toMatchObject([{ token }])
  })

  test('control: without FOR UPDATE in the take-over, the guard is told the old token', async () => {
    await using holder = await place.open()
    await using other = await place.open()
    await table(holder)
    await other.rows('SELECT pg_advisory_lock(1)')
    await holder.rows('BEGIN')
    const locking = holder.rows(lateLock)
    await other.seesWaiting(holder)
    await other.rows('UPDATE seat SET token = 2')
    await other.rows('SELECT pg_advisory_unlock(1)')
    expect(await locking).toMatchObject([{ token: 1 }])
  })
})
