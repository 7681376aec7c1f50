/** A handler that answers before its COMMIT, which takes its time: the rows of the next call are those after it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { hunt, instrument } from '../../../src/hunt.ts'

instrument(pg)

let url: string
let pool: pg.Pool
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE seats (id int PRIMARY KEY, free int NOT NULL);
      INSERT INTO seats VALUES (1, 2);
      CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER slow_commit AFTER UPDATE ON seats DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION slowly()`),
  )
  pool = new pg.Pool({ connectionString: url })
})
afterAll(() => pool.end())

async function app(_: IncomingMessage, response: ServerResponse): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const { rows } = await client.query('SELECT free FROM seats WHERE id = 1 FOR UPDATE')
    if (rows[0].free === 0) {
      await client.query('ROLLBACK')
      response.writeHead(409).end()
      return
    }
    await client.query('UPDATE seats SET free = free - 1 WHERE id = 1')
    response.writeHead(200).end()
    await client.query('COMMIT')
  } finally {
    client.release()
  }
}

test('it is looked at from its own rows, and its limit is found', async () => {
  const report = await hunt({
    url,
    app,
    async suite({ fetch }) {
      for (const status of [200, 200, 409]) {
        expect((await fetch('/seats', { method: 'POST' })).status).toBe(status)
      }
    },
  })
  expect(report.calls.map(({ said, unusable }) => [said, unusable])).toEqual([
    ['accepted', undefined],
    ['accepted', undefined],
    ['refused', undefined],
  ])
  expect(report.pairs).toMatchObject([{ verdict: 'refuted' }])
  expect(report.pairs[0]?.from).toContain('the rows after it ran 1 time')
})
