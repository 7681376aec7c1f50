/** F7 Rows are told apart by the text of their keys, unless the session reads texts in a way of its own. */
import { withClient } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE pad (x int);
      CREATE TABLE s (k text PRIMARY KEY, v int);
      CREATE FUNCTION read_old() RETURNS text LANGUAGE sql AS $$
        SELECT set_config('standard_conforming_strings', 'off', false) $$`),
  )
})

const seed = async ({ query }: { query(text: string): Promise<unknown> }): Promise<void> => {
  await query('TRUNCATE s')
  await query(`INSERT INTO s VALUES ('a', 1), ('Ã©', 1), ('b', 1)`)
}

/** Enough of them that no random order is likely to be the one. */
async function pads(client: Pick<PoolClient, 'query'>): Promise<void> {
  for (let index = 0; index < 8; index++) await client.query('SELECT x FROM pad')
}

/** Twice the double of a row, and one more for what another session calls by another text. */
function look(key: string, setting: string, other: string): Promise<Report> {
  return explore({
    url,
    seed,
    onProgress: () => undefined,
    flows: {
      doubles: async ({ pool }) => {
        await pads(pool)
        for (let time = 0; time < 2; time++) {
          await pool.query(`UPDATE s SET v = v * 2 WHERE k = '${key}'`)
        }
      },
      adds: async ({ pool }) => {
        const client = await pool.connect()
        try {
          await client.query(setting)
          await client.query(`UPDATE s SET v = v + 1 WHERE k = '${other}'`)
          await pads(client)
        } finally {
          client.release()
        }
      },
    },
  })
}

test.each([
  ['a', 'SET standard_conforming_strings = off', String.raw`\141`],
  ['a', 'SELECT read_old()', String.raw`\141`],
  ['Ã©', `SET client_encoding = 'LATIN1'`, 'é'],
])('%s after %s is %s', async (key, setting, other) => {
  expect((await look(key, setting, other)).verdict).toBe('race')
})

test('other rows are still others without that', async () => {
  const { verdict, coverage } = await look('a', 'SET work_mem = 65536', 'b')
  expect([verdict, coverage.classes]).toEqual(['race-free', 1])
})
