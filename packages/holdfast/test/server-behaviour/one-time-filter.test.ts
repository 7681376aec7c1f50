import { waitUntil } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { checkedStatement } from '../../src/engines/postgres/shards/shards.ts'
import { onEveryVersion } from './support/on-every-version.ts'
import { type Session, sqlStateFrom } from './support/session.ts'

/**
 * What the check of a routed statement relies on: a condition that reads nothing of the statement is
 * evaluated before anything else, in the snapshot of the statement, and a transaction that may have passed
 * it with an older map can be seen until it ends.
 */
onEveryVersion((place) => {
  const prepare = async (session: Session): Promise<void> => {
    await session.rows(`
      DROP SCHEMA IF EXISTS probe CASCADE; CREATE SCHEMA probe;
      CREATE SEQUENCE probe.done; CREATE TABLE probe.map (open boolean); CREATE TABLE probe.item (id int);
      INSERT INTO probe.map VALUES (false); INSERT INTO probe.item VALUES (1);
      CREATE FUNCTION probe.here(buckets int[]) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
      BEGIN
        PERFORM FROM probe.map WHERE open;
        IF FOUND THEN RETURN true; END IF;
        RAISE EXCEPTION 'closed' USING ERRCODE = 'HF001';
      END $$;
      CREATE FUNCTION probe.work() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
      BEGIN RETURN nextval('probe.done'); END $$`)
  }
  const texts = {
    'a call of a function': 'SELECT probe.work() AS answer',
    'several columns': 'SELECT probe.work()::text AS answer, pg_backend_pid() AS pid',
    'a CASE': `SELECT CASE WHEN probe.work() > 0 THEN 'yes' END AS answer`,
    'rows of a table': 'SELECT probe.work() AS answer FROM probe.item',
    'a CTE': 'WITH w AS MATERIALIZED (SELECT probe.work() AS answer) SELECT answer FROM w',
    'locked rows': 'SELECT id, probe.work() FROM probe.item FOR UPDATE',
  }

  test.each(Object.entries(texts))('%s: refused before anything is done', async (_, text) => {
    await using session = await place.open()
    await prepare(session)
    const checked = checkedStatement('probe', { text, values: [] }, [1])
    const run = (): Promise<unknown> =>
      session.rows(checked.text.replace('$1', `'${String(checked.values[0])}'`))
    expect(await sqlStateFrom(run())).toBe('HF001')
    expect(await session.value('SELECT is_called FROM probe.done')).toBe(false)
    await session.rows('UPDATE probe.map SET open = true')
    await run()
    expect(await session.value('SELECT is_called FROM probe.done')).toBe(true)
  })

  test('whoever passed with an older map is known until the transaction ends', async () => {
    await using early = await place.open()
    await using mover = await place.open()
    await prepare(early)
    await mover.rows('UPDATE probe.map SET open = true; SELECT pg_advisory_lock(7)')
    const pid = await early.value('SELECT pg_backend_pid()')
    const { text } = checkedStatement(
      'probe',
      { text: 'SELECT pg_advisory_xact_lock(7) IS NULL, probe.work()', values: [] },
      [1],
    )
    const waiting = early.rows(text.replace('$1', `'{1}'`))
    const transactions = `SELECT pid FROM pg_locks WHERE locktype = 'virtualxid' AND pid = ${Number(pid)}`
    await waitUntil('it waits', async () =>
      (await mover.rows(`SELECT 1 FROM pg_locks WHERE pid = ${Number(pid)} AND NOT granted`))
        .length > 0
        ? true
        : undefined,
    )
    await mover.rows('UPDATE probe.map SET open = false')
    // It passed before: the map is handed over only when nobody like this is left.
    expect(await mover.rows(transactions)).toHaveLength(1)
    await mover.rows('SELECT pg_advisory_unlock(7)')
    await waiting
    expect(await mover.rows(transactions)).toHaveLength(0)
  })
})
