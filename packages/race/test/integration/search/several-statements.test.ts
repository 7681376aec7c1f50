/** Others act between the statements of one query string: READ COMMITTED takes a snapshot for each. */
import { withClient } from '@holdfast/testkit'
import type { PoolClient, QueryResult } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE acc (id int PRIMARY KEY, n int);
      CREATE TABLE cfg (id int PRIMARY KEY, n int);
      CREATE TABLE slot (id int PRIMARY KEY)`),
  )
})

const look = (flows: Readonly<Record<string, Flow>>): Promise<Report> =>
  explore({
    url,
    flows,
    onProgress: () => undefined,
    seed: async ({ query }) => {
      await query('TRUNCATE acc, cfg, slot')
      await query('INSERT INTO acc VALUES (1, 100), (2, 0)')
      await query('INSERT INTO cfg VALUES (1, 0), (2, 0)')
    },
  })

const told = ({ verdict, coverage }: Report): unknown => [verdict, coverage.exhaustive]

const inOne =
  (text: string): Flow =>
  async ({ pool }) => {
    const results = (await pool.query(text)) as unknown as QueryResult<{ n: number }>[]
    return results.flatMap(({ rows }) => rows.map(({ n }) => n))
  }

/** A transaction that moves everything from one row to the other. */
const move: Flow = async ({ pool }) => {
  const client: PoolClient = await pool.connect()
  try {
    await client.query('BEGIN')
    await client.query('UPDATE acc SET n = n - 100 WHERE id = 1')
    await client.query('UPDATE acc SET n = n + 100 WHERE id = 2')
    await client.query('COMMIT')
  } finally {
    client.release()
  }
}

const reads = 'SELECT n FROM acc WHERE id = 1; SELECT n FROM acc WHERE id = 2'

describe('several statements in one query string', () => {
  test.each([
    ['two reads', reads],
    ['two reads in a transaction of their own', `BEGIN; ${reads}; COMMIT`],
    ['two reads, and a setting', `SET statement_timeout = 0; ${reads}`],
    [
      'a write that is based on a read',
      'SELECT n FROM acc WHERE id = 1; INSERT INTO slot SELECT 1 WHERE (SELECT n FROM acc WHERE id = 2) = 100',
    ],
  ])('%s: a race', async (_, text) => {
    expect((await look({ report: inOne(text), move })).verdict).toBe('race')
  })

  test('are none where one snapshot is for all of them', async () => {
    const text = `BEGIN ISOLATION LEVEL REPEATABLE READ; ${reads}; COMMIT`
    expect(told(await look({ report: inOne(text), move }))).toEqual(['race-free', true])
  })

  test('are none where nobody writes what they read', async () => {
    const text = 'SELECT n FROM cfg WHERE id = 1; SELECT n FROM cfg WHERE id = 2'
    expect(told(await look({ report: inOne(text), move }))).toEqual(['race-free', true])
  })

  test('locks are taken one after the other', async () => {
    const change = (first: number, second: number): string =>
      [first, second].map((id) => `UPDATE acc SET n = n + 1 WHERE id = ${id}`).join('; ')
    const report = await look({ a: inOne(change(1, 2)), b: inOne(change(2, 1)) })
    expect(told(report)).toEqual(['race-free', true])
    expect(report.coverage.deadlocks).toBeGreaterThan(0)
  })

  test('are undone together', async () => {
    const add = inOne('INSERT INTO slot VALUES (1); INSERT INTO slot VALUES (1); SELECT 1')
    const report = await look({ add, count: inOne('SELECT id AS n FROM slot; SELECT 1 AS n') })
    expect(told(report)).toEqual(['race-free', true])
  })
})
