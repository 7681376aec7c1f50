import { expect, test } from 'vitest'
import { onEveryVersion } from './support/on-every-version.ts'
import { sqlStateFrom } from './support/session.ts'

/** What row locks do and do not hold back. */
onEveryVersion((place) => {
  /** Whether a child row can be inserted while its parent is locked, by strength. */
  test.each([
    { strength: 'FOR KEY SHARE', blocks: false },
    { strength: 'FOR SHARE', blocks: false },
    { strength: 'FOR NO KEY UPDATE', blocks: false },
    { strength: 'FOR UPDATE', blocks: true },
  ])('locked $strength: does a child’s insert wait? $blocks', async ({ strength, blocks }) => {
    await using holder = await place.open()
    await using other = await place.open()
    await holder.rows(
      `DROP TABLE IF EXISTS child, parent;
       CREATE TABLE parent (id int PRIMARY KEY, note text);
       CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent);
       INSERT INTO parent VALUES (1)`,
    )
    await holder.rows(`BEGIN; SELECT FROM parent WHERE id = 1 ${strength}`)
    const inserting = other.rows('INSERT INTO child VALUES (1, 1)')
    const waited = await Promise.race([
      holder.seesWaiting(other).then(() => true),
      inserting.then(() => false),
    ])
    await holder.rows('COMMIT')
    await inserting
    expect(waited).toBe(blocks)
  })

  test('FOR UPDATE of a row that is not there locks nothing', async () => {
    await using one = await place.open()
    await using two = await place.open()
    await one.rows('CREATE TABLE empty (id int PRIMARY KEY)')
    await one.rows('BEGIN; SELECT FROM empty WHERE id = 1 FOR UPDATE')
    await two.rows('BEGIN; SELECT FROM empty WHERE id = 1 FOR UPDATE NOWAIT')
    // Control: once the row is there, the same statement is refused.
    await one.rows('ROLLBACK; INSERT INTO empty VALUES (1)')
    await two.rows('ROLLBACK; BEGIN; SELECT FROM empty WHERE id = 1 FOR UPDATE')
    const refused = one.rows('SELECT FROM empty WHERE id = 1 FOR UPDATE NOWAIT')
    expect(await sqlStateFrom(refused)).toBe('55P03')
  })

  test('lock_timeout starts again at every row', async () => {
    await using first = await place.open()
    await using second = await place.open()
    await using waiter = await place.open()
    await first.rows('CREATE TABLE queue AS SELECT id FROM generate_series(1, 2) AS id')
    await first.rows('BEGIN; SELECT FROM queue WHERE id = 1 FOR UPDATE')
    await second.rows('BEGIN; SELECT FROM queue WHERE id = 2 FOR UPDATE')
    await waiter.rows(`BEGIN; SET LOCAL lock_timeout = '1s'`)
    const began = performance.now()
    const waiting = sqlStateFrom(waiter.rows('SELECT FROM queue ORDER BY id FOR UPDATE'))
    expect((await second.seesWaiting(waiter)).blockers).toEqual([first.pid])
    await second.seesRunningFor(waiter, 500)
    await first.rows('COMMIT')
    expect(await waiting).toBe('55P03')
    expect(performance.now() - began).toBeGreaterThan(1_490)
  })
})
