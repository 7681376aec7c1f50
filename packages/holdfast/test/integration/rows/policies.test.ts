/** Rows that a policy lets a role see, and not change: PostgreSQL passes over them without a word. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { pgFixture } from '../../support/pg-fixture.ts'
import { newRole } from '../../support/schema-fixture.ts'

const fixture = pgFixture(`
  CREATE TABLE seen (id int PRIMARY KEY, note text, version int NOT NULL DEFAULT 1);
  INSERT INTO seen VALUES (1, 'mine'), (2, 'not mine');
  ALTER TABLE seen ENABLE ROW LEVEL SECURITY;
  CREATE POLICY read ON seen FOR SELECT USING (true);
  CREATE POLICY write ON seen FOR UPDATE USING (id = 1)`)
let pool: pg.Pool
let hf: Holdfast<pg.PoolClient>

beforeAll(async () => {
  const role = await newRole(fixture.observer, 'LOGIN')
  await fixture.observer.query(`GRANT SELECT, UPDATE ON seen TO ${pg.escapeIdentifier(role)}`)
  const url = new URL(fixture.database.directUrl)
  url.username = encodeURIComponent(role)
  pool = new pg.Pool({ connectionString: url.href, max: 4 })
  hf = createHoldfast(fromPg(pool))
})
afterAll(async () => await pool.end())

test('withVersionCheck says so once, and does not do the slow work again', async () => {
  let works = 0
  const check = {
    attempts: 4,
    work: async () => (works += 1),
    write: async () => 'written',
  }
  await expect(hf.rows.withVersionCheck('seen', 2, check)).rejects.toMatchObject({
    code: 'ROWS_CHANGE_SUPPRESSED',
    retryable: false,
  })
  expect(works).toBe(1)
  expect(await hf.rows.withVersionCheck('seen', 1, check)).toBe('written')
})

test('control: a row that is gone, or has changed, is a conflict', async () => {
  const gone = await fixture.observer.connect()
  try {
    const check = (statement: string) =>
      hf.rows.withVersionCheck('seen', 2, {
        work: async () => await gone.query(statement),
        write: async () => 'written',
      })
    const conflict = { code: 'ROWS_VERSION_CONFLICT' }
    await expect(check('UPDATE seen SET version = 7 WHERE id = 2')).rejects.toMatchObject({
      ...conflict,
      details: { reason: 'changed', foundVersion: '7' },
    })
    await expect(check('DELETE FROM seen WHERE id = 2')).rejects.toMatchObject({
      ...conflict,
      details: { reason: 'missing' },
    })
  } finally {
    await gone.query(`INSERT INTO seen VALUES (2, 'not mine')`)
    gone.release()
  }
})

test('lock cannot tell it from a row that is not there, and skip not from one that others have', async () => {
  await hf.transaction(async (tx) => {
    const waited = await hf.rows.lock(tx, 'seen', [1, 2], { wait: '1 s' })
    expect(waited).toMatchObject({ rows: [{ id: 1 }], missing: [2], skipped: [] })
    const skipped = await hf.rows.lock(tx, 'seen', [1, 2], { wait: 'skip' })
    expect(skipped).toMatchObject({ rows: [{ id: 1 }], missing: [], skipped: [2] })
  })
})
